package manage

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/deliver"
	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/wire/apierr"
	"weir/pkg/wire/secret"
)

// MaxDestinations is the number of destinations of a machine.
const MaxDestinations = 20

// destinationView is a destination as it is shown: of its secrets the names, of long ones
// the last four characters, and of its address the host.
type destinationView struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Kind     string            `json:"kind"`
	Enabled  bool              `json:"enabled"`
	Events   []string          `json:"events,omitempty"`
	Settings map[string]string `json:"settings"`
	Secrets  []string          `json:"secrets"` // the names of those that are set
	Last4    map[string]string `json:"last4,omitempty"`
	Host     string            `json:"host,omitempty"`
	// SigningSecret verifies the deliveries of a webhook. It is not in the list.
	SigningSecret string `json:"signingSecret,omitempty"`
	CreatedAt     int64  `json:"createdAt"`
	UpdatedAt     int64  `json:"updatedAt"`
	Generation    int64  `json:"generation"`

	Status        string `json:"status"` // active, paused, failing, disabled
	DisabledWhy   string `json:"disabledReason,omitempty"`
	DisabledAt    int64  `json:"disabledAt,omitempty"`
	LastSuccessAt int64  `json:"lastSuccessAt,omitempty"`
	LastError     string `json:"lastError,omitempty"`
	LastErrorAt   int64  `json:"lastErrorAt,omitempty"`
	Waiting       int    `json:"waiting"` // deliveries
	NextTryAt     int64  `json:"nextTryAt,omitempty"`
	Dropped       int64  `json:"dropped"` // entries that were not delivered
}

func (c *change) viewDestination(row *storage.Destination) destinationView {
	o := c.Outbox(row.ID)
	v := destinationView{
		ID: row.ID, Name: row.Name, Kind: row.Kind, Enabled: !row.Paused, Events: row.Events, Settings: row.Options,
		Secrets: SortedKeys(row.Secrets), Last4: last4Of(row), Host: row.Host, CreatedAt: row.CreatedAt,
		UpdatedAt: row.UpdatedAt, Generation: row.Generation, Status: "active", DisabledWhy: o.Disabled,
		DisabledAt: o.DisabledAt, LastSuccessAt: o.SentAt, LastError: o.Error, LastErrorAt: o.ErrorAt,
		Waiting: len(o.Items), Dropped: o.Dropped,
	}
	if v.Settings == nil {
		v.Settings = map[string]string{}
	}
	for i := range o.Items {
		if at := max(o.Items[i].From, o.From); o.Disabled == "" && (v.NextTryAt == 0 || at < v.NextTryAt) {
			v.NextTryAt = at
		}
	}
	switch {
	case row.Paused:
		v.Status = "paused"
	case o.Disabled != "":
		v.Status = "disabled"
	case o.ErrorAt > o.SentAt:
		v.Status = "failing"
	}
	return v
}

// last4Of returns the ends of long secrets, but not of lists.
func last4Of(row *storage.Destination) map[string]string {
	shown := maps.Clone(row.Last4)
	if k := deliver.KindOf(row.Kind); k != nil {
		for i := range k.Fields {
			if k.Fields[i].Pairs {
				delete(shown, k.Fields[i].Name)
			}
		}
	}
	return shown
}

// showDestination is viewDestination with the secret that webhooks are signed with.
func (c *change) showDestination(row *storage.Destination) destinationView {
	v := c.viewDestination(row)
	if row.Kind == "webhook" {
		v.SigningSecret = c.o.webhookSecret(c.ID, row.ID)
	}
	return v
}

// kindView describes a kind of destination, for a form.
type kindView struct {
	Name   string      `json:"name"`
	Takes  string      `json:"takes"` // notification, telemetry or lines
	Fields []fieldView `json:"fields"`
}

type fieldView struct {
	Name     string   `json:"name"`
	Secret   bool     `json:"secret,omitempty"`
	Required bool     `json:"required,omitempty"`
	Values   []string `json:"values,omitempty"`
}

type eventView struct {
	Name    string `json:"name"`
	Default bool   `json:"default,omitempty"`
	Text    string `json:"description"`
}

func (c *change) destinationList() (any, error) {
	rows := c.Destinations()
	out := struct {
		Object string            `json:"object"`
		Data   []destinationView `json:"data"`
		Kinds  []kindView        `json:"kinds"`
		Events []eventView       `json:"events"`
	}{Object: "list", Data: make([]destinationView, len(rows))}
	for i := range rows {
		out.Data[i] = c.viewDestination(&rows[i])
	}
	for _, k := range deliver.Kinds() {
		v := kindView{Name: k.Name, Takes: k.Takes}
		for _, f := range k.Fields {
			v.Fields = append(v.Fields, fieldView{f.Name, f.Secret, f.Required, f.Values})
		}
		out.Kinds = append(out.Kinds, v)
	}
	for _, e := range deliver.Events() {
		out.Events = append(out.Events, eventView(e))
	}
	c.etag = c.changed("destinations")
	return out, nil
}

func (c *change) destination() (storage.Destination, error) {
	return recordOf[storage.Destination](c, storage.DestinationPrefix, apierr.New(404, "destination_not_found",
		"No destination has this id. GET /api/destinations lists the destinations."))
}

func (c *change) destinationGet() (any, error) {
	row, err := c.destination()
	if err != nil {
		return nil, err
	}
	c.etag = row.Generation
	return c.showDestination(&row), nil
}

func (c *change) destinationCreate() (any, error) {
	if err := c.match(c.changed("destinations")); err != nil {
		return nil, err
	}
	if len(c.List(storage.DestinationPrefix)) >= MaxDestinations {
		return nil, apierr.New(409, "too_many", "A machine has at most %d destinations.", MaxDestinations)
	}
	id, err := rpc.NewID(c.o.Rand, 20)
	if err != nil {
		return nil, err
	}
	row := storage.Destination{ID: id, CreatedAt: c.Now}
	c.target, c.status = id, 201
	return c.storeDestination(&row)
}

func (c *change) destinationUpdate() (any, error) {
	row, err := c.destination()
	if err == nil {
		err = c.match(row.Generation)
	}
	if err != nil {
		return nil, err
	}
	was := row.Paused
	answer, err := c.storeDestination(&row)
	c.switched("enabled", was, row.Paused)
	return answer, err
}

// storeDestination changes a destination by the fields of the body.
func (c *change) storeDestination(row *storage.Destination) (any, error) {
	in := c.input()
	in.only("name", "kind", "enabled", "events", "settings")
	plain := c.o.readDestination(in, row, false)
	if err := in.failed(); err != nil {
		return nil, err
	}
	if err := c.putDestination(row, plain); err != nil {
		return nil, err
	}
	c.fields, c.etag = in.names, row.Generation
	return c.showDestination(row), nil
}

// putDestination seals the secrets that were set, "" for one to be removed, and stores the
// destination.
func (c *change) putDestination(row *storage.Destination, plain map[string]string) error {
	if err := c.mayTakeBodies(row, plain); err != nil {
		return err
	}
	sealed, last4 := map[string]secret.Sealed{}, map[string]string{}
	for field, s := range row.Secrets {
		if _, set := plain[field]; !set {
			sealed[field], last4[field] = s, row.Last4[field]
		}
	}
	for field, value := range plain {
		if value == "" {
			continue
		}
		s, err := c.o.Keyring.Seal(c.ID, row.SealedAs(), field, secret.New(value))
		if err != nil {
			return err
		}
		sealed[field], last4[field] = s, rpc.Last4(value)
	}
	for field, text := range last4 {
		if text == "" {
			delete(last4, field)
		}
	}
	row.Secrets, row.Last4, row.UpdatedAt = sealed, last4, c.Now
	row.Last4 = last4Of(row)
	c.PutDestination(row)
	if !row.Paused {
		c.Enable(row.ID)
	}
	return nil
}

// mayTakeBodies refuses settings by which captured bodies leave to a caller who may not read
// them.
func (c *change) mayTakeBodies(row *storage.Destination, plain map[string]string) error {
	var was storage.Destination
	c.Load(storage.DestinationPrefix+row.ID, &was)
	if !deliver.TakesBodies(row.Options) || len(plain) == 0 && maps.Equal(was.Options, row.Options) {
		return nil
	}
	if err := c.signedIn(); err != nil {
		return err
	}
	return c.mayExport()
}

// readDestination reads the fields of a destination that were sent, and returns its new
// secrets. An imported one without a secret that its kind needs is paused.
func (o *Manager) readDestination(in *Input, row *storage.Destination, imported bool) (plain map[string]string) {
	if v, ok := in.text("name", 100); ok {
		row.Name = v
	}
	if v, ok := in.text("kind", 40); ok || row.Kind == "" {
		if row.Kind != "" && v != row.Kind {
			in.fail("kind", "cannot change; create another destination")
		}
		row.Kind = v
	}
	k := deliver.KindOf(row.Kind)
	if k == nil {
		in.fail("kind", "must be one of %s", kindNames())
		return nil
	}
	row.Name = cmp.Or(row.Name, k.Name)
	if v, ok := in.bool("enabled"); ok {
		row.Paused = !v
	}
	if v, ok := in.texts("events", len(deliver.Events()), 40); ok {
		for _, name := range v {
			if !deliver.IsEvent(name) || k.Takes != storage.Notification {
				in.fail("events", "has the unknown event %q", name)
			}
		}
		row.Events = v
	}
	return o.readFields(in, k, row, imported)
}

func kindNames() string {
	var names []string
	for _, k := range deliver.Kinds() {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

// readFields reads the settings of the kind. If the host of the address changes, the
// secrets that are not sent with it are removed: they were given for another one.
func (o *Manager) readFields(in *Input, k *deliver.Kind, row *storage.Destination,
	imported bool) (plain map[string]string) {
	plain = map[string]string{}
	options := map[string]string{}
	maps.Copy(options, row.Options)
	if v, ok := in.values["settings"]; ok && in.Err == nil {
		s := sub(v, in.at+"settings")
		s.only(fieldNames(k)...)
		for i := range k.Fields {
			f := &k.Fields[i]
			value, given := o.readField(s, f, row, plain)
			switch {
			case !given:
			case f.Secret:
				plain[f.Name] = value
			case value == "":
				delete(options, f.Name)
			default:
				options[f.Name] = value
			}
		}
		in.Err = s.Err
	}
	for i := range k.Fields {
		f := &k.Fields[i]
		value, given := plain[f.Name]
		missing := options[f.Name] == ""
		if f.Secret {
			missing = given && value == "" || !given && row.Secrets[f.Name] == ""
		}
		if f.Required && missing && f.Secret && imported {
			row.Paused = true
			continue
		}
		if f.Required && missing {
			in.fail("settings."+f.Name, "is required for this kind")
		}
	}
	if k.Check != nil && in.Err == nil {
		if field, why := k.Check(options); why != "" {
			in.fail("settings."+field, "%s", why)
		}
	}
	if host := options["host"]; row.Kind == "smtp" && in.Err == nil {
		if err := o.Policy().CheckServer(host, options["port"], options["tls"]); err != nil {
			in.fail("settings.host", "%v", err)
		}
		row.Host = host
	}
	row.Options = options
	return plain
}

// readField reads a field of a kind: a string, or a number or a choice of true and false as one.
// null is "".
func (o *Manager) readField(in *Input, f *deliver.Field, row *storage.Destination,
	plain map[string]string) (value string, given bool) {
	v, ok := in.values[f.Name]
	if !ok {
		return "", false
	}
	if v.Type == gjson.Number || v.IsBool() && f.Values != nil {
		in.values[f.Name] = gjson.Result{Type: gjson.String, Str: v.Raw}
	}
	value, _ = in.text(f.Name, cmp.Or(f.Max, 200))
	if value == "" {
		return "", true
	}
	switch {
	case f.Values != nil && !slices.Contains(f.Values, value):
		in.fail(f.Name, "must be one of %s", strings.Join(f.Values, ", "))
	case f.Secret && !utf8.ValidString(value):
		in.fail(f.Name, "is not valid")
	case f.Address:
		canonical, host, err := o.Policy().Address(value)
		if err != nil {
			in.fail(f.Name, "%v", err)
			return "", true
		}
		if row.Host != host {
			forget(row, plain)
		}
		row.Host, value = host, canonical
	case f.Place && row.Options[f.Name] != value:
		forget(row, plain)
	}
	if f.Check != nil && in.Err == nil {
		if why := f.Check(value); why != "" {
			in.fail(f.Name, "%s", why)
		}
	}
	return value, true
}

// forget removes the secrets that are not sent.
func forget(row *storage.Destination, plain map[string]string) {
	for field := range row.Secrets {
		if _, set := plain[field]; !set {
			plain[field] = ""
		}
	}
}

func fieldNames(k *deliver.Kind) (names []string) {
	for i := range k.Fields {
		names = append(names, k.Fields[i].Name)
	}
	return names
}

func (c *change) destinationDelete() (any, error) {
	row, err := c.destination()
	if err == nil {
		err = c.match(row.Generation)
	}
	if err != nil {
		return nil, err
	}
	c.DeleteDestination(row.ID)
	c.status = 204
	return nil, nil
}

// deliveryView is an item that waits, or that was given up.
type deliveryView struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title,omitempty"`
	State   string `json:"state"` // waiting or dropped
	At      int64  `json:"at"`
	NextAt  int64  `json:"nextTryAt,omitempty"`
	Until   int64  `json:"until"`
	Tries   int    `json:"tries"`
	Error   string `json:"error,omitempty"`
	Bytes   int    `json:"bytes"`
	Entries int64  `json:"entries,omitempty"`
}

// destinationDeliveries answers with what waits for a destination and the latest that were
// not delivered, the newest first.
func (c *change) destinationDeliveries() (any, error) {
	row, err := c.destination()
	if err != nil {
		return nil, err
	}
	box := c.Outbox(row.ID)
	out := list[deliveryView]{"list", []deliveryView{}}
	add := func(items []storage.Delivery, state string) {
		for i := len(items) - 1; i >= 0; i-- {
			d := &items[i]
			v := deliveryView{ID: d.ID, Type: d.Type, Title: d.Title, State: state, At: d.At, Until: d.Until,
				Tries: d.Tries, Error: d.Error, Bytes: d.Size, Entries: d.Entries}
			if state == "waiting" {
				if box.Disabled == "" {
					v.NextAt = max(d.From, box.From)
				}
			}
			out.Data = append(out.Data, v)
		}
	}
	add(box.Items, "waiting")
	add(box.Dead, "dropped")
	return out, nil
}

// destinationTest sends a test and answers with its result. A destination that takes it is
// enabled again.
func (c *change) destinationTest() (any, error) {
	row, err := c.destination()
	if err == nil {
		err = admitTest(c.Tx)
	}
	if err != nil {
		return nil, err
	}
	d, err := c.o.OpenDestination(c.ID, &row)
	if err != nil {
		e := apierr.New(503, "key_unavailable", "A stored secret of the destination cannot be decrypted; the operator must check CREDENTIALS_KEY.")
		e.Err = err
		return nil, e
	}
	item := deliver.KindOf(row.Kind).TestItem(d, cmp.Or(c.Meta.Name, c.ID))
	item.ID, item.DestinationID, item.At = c.NextDeliveryID(), row.ID, c.Now
	if err := c.Commit(); err != nil {
		return nil, err
	}
	result := c.o.Deliver(c.Call, d, &item)
	if err := c.Err(); err != nil {
		return nil, err
	}
	if !c.Exists() {
		return nil, storage.ErrNoMachine()
	}
	if _, ok := c.Get(storage.DestinationPrefix + row.ID); ok {
		c.Tested(row.ID, result)
	}
	out := struct {
		Delivered bool   `json:"delivered"`
		Error     string `json:"error,omitempty"`
	}{result.Verdict == storage.Delivered, result.Why}
	return out, nil
}
