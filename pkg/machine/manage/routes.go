package manage

// handlers serve the management routes in the object of a machine, within one turn. One
// that is not of a GET is a mutation, whose audit record is written in the same turn.
//
// To add one: write a method of change in the file that its URL names (keys.go for
// /api/keys), and add its row here and to the routes of package api.
var handlers = map[string]func(c *change) (any, error){
	"GET /api/providers":               (*change).providerList,
	"POST /api/providers":              (*change).providerCreate,
	"GET /api/providers/{id}":          (*change).providerGet,
	"PUT /api/providers/{id}":          (*change).providerUpdate,
	"DELETE /api/providers/{id}":       (*change).providerDelete,
	"POST /api/providers/{id}/restore": (*change).providerRestore,

	"POST /api/oauth/{provider}/authorize": (*change).oauthAuthorize,
	"POST /api/oauth/{provider}/device":    (*change).oauthDevice,
	"POST /api/oauth/{provider}/poll":      (*change).oauthPoll,
	"POST /api/oauth/{provider}/cancel":    (*change).oauthCancel,

	"GET /api/combos":         (*change).comboList,
	"POST /api/combos":        (*change).comboCreate,
	"GET /api/combos/{id}":    (*change).comboGet,
	"PUT /api/combos/{id}":    (*change).comboUpdate,
	"DELETE /api/combos/{id}": (*change).comboDelete,

	"GET /api/budgets":         (*change).budgetList,
	"POST /api/budgets":        (*change).budgetCreate,
	"GET /api/budgets/{id}":    (*change).budgetGet,
	"PUT /api/budgets/{id}":    (*change).budgetUpdate,
	"DELETE /api/budgets/{id}": (*change).budgetDelete,

	"GET /api/destinations":                 (*change).destinationList,
	"POST /api/destinations":                (*change).destinationCreate,
	"GET /api/destinations/{id}":            (*change).destinationGet,
	"PUT /api/destinations/{id}":            (*change).destinationUpdate,
	"DELETE /api/destinations/{id}":         (*change).destinationDelete,
	"GET /api/destinations/{id}/deliveries": (*change).destinationDeliveries,
	"POST /api/destinations/{id}/test":      (*change).destinationTest,

	"GET /api/keys":               (*change).keyList,
	"POST /api/keys":              (*change).keyCreate,
	"GET /api/keys/{id}":          (*change).keyGet,
	"PUT /api/keys/{id}":          (*change).keyUpdate,
	"DELETE /api/keys/{id}":       (*change).keyDelete,
	"POST /api/keys/{id}/rotate":  (*change).keyRotate,
	"GET /api/keys/{id}/usage":    (*change).keyUsage,
	"GET /api/keys/{id}/networks": (*change).keyNetworks,

	"PUT /api/people/{id}":         (*change).personUpdate,
	"DELETE /api/people/{id}":      (*change).personRemove,
	"POST /api/invitations":        (*change).inviteCreate,
	"DELETE /api/invitations/{id}": (*change).inviteDelete,

	"POST /api/setup":         (*change).leaseCreate,
	"POST /api/device/{code}": (*change).deviceDecide,

	"GET /api/models/alias":        (*change).aliasList,
	"PUT /api/models/alias":        (*change).aliasPut,
	"DELETE /api/models/alias":     (*change).aliasDelete,
	"GET /api/models/custom":       (*change).customList,
	"POST /api/models/custom":      (*change).customCreate,
	"DELETE /api/models/custom":    (*change).customDelete,
	"GET /api/models/disabled":     (*change).disabledList,
	"POST /api/models/disabled":    (*change).disabledAdd,
	"DELETE /api/models/disabled":  (*change).disabledDelete,
	"GET /api/models/availability": (*change).availability,

	"GET /api/quota": (*change).quota,

	"GET /api/settings":   (*change).settingsGet,
	"PATCH /api/settings": (*change).settingsPatch,

	"GET /api/audit": (*change).auditList,

	"GET /api/health":          (*change).health,
	"GET /api/health/timeline": (*change).timeline,

	"GET /api/usage":        (*change).usageList,
	"GET /api/usage/recent": (*change).usageRecent,

	"GET /api/requests":      (*change).requestList,
	"GET /api/requests/{id}": (*change).requestGet,

	"GET /api/captures":         (*change).captureList,
	"DELETE /api/captures":      (*change).captureDeleteAll,
	"GET /api/captures/{id}":    (*change).captureShow,
	"DELETE /api/captures/{id}": (*change).captureDelete,

	"POST /api/compare": (*change).compareSecrets,

	"GET /api/export":  (*change).export,
	"POST /api/export": (*change).exportSealed,

	"POST /api/import": (*change).importDoc,
}
