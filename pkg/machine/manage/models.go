package manage

import (
	"slices"
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/machine/storage"
	"weir/pkg/provider"
	"weir/pkg/store"
	"weir/pkg/wire/apierr"
)

// customTypes are the types that a custom model may have.
// See docs/reference/spec.md, 2.5.
var customTypes = []string{"", "llm", "imageToText", "embedding", "image", "tts", "stt", "video", "music", "rerank"}

func (c *change) aliasList() (any, error) {
	out := struct {
		Aliases map[string]string `json:"aliases"`
	}{map[string]string{}}
	for _, a := range c.Aliases() {
		out.Aliases[a.Alias] = a.Model
	}
	c.etag = c.changed("alias")
	return out, nil
}

// aliasPut sets one alias: {"alias":"fast","model":"openai/gpt-5-mini"}.
func (c *change) aliasPut() (any, error) {
	if err := c.match(c.changed("alias")); err != nil {
		return nil, err
	}
	in := c.input()
	in.only("alias", "model", "allowUnknown")
	unknown, _ := in.bool("allowUnknown")
	var a storage.Alias
	a.Alias, _ = in.text("alias", 128)
	a.Model, _ = in.text("model", 320)
	if !IsAliasName(a.Alias) {
		in.fail("alias", "must be a name without slashes%s", badName(a.Alias))
	}
	if !isModelRef(a.Model) {
		in.fail("model", "must be <alias or provider id>/<model>")
	}
	unlisted := false
	if in.Err == nil && !unknown {
		unlisted = namesOf(c.Tx).checkTarget(in, "model", a.Model)
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	if _, ok := c.Get(storage.AliasPrefix + a.Alias); !ok && len(c.List(storage.AliasPrefix)) >= MaxAliases {
		return nil, apierr.New(409, "too_many", "A machine has at most %d aliases.", MaxAliases)
	}
	c.PutAlias(&a)
	c.target, c.fields, c.etag = a.Alias, in.names, c.changed("alias")
	out := struct {
		storage.Alias
		Warning string `json:"warning,omitempty"`
	}{Alias: a}
	if unlisted {
		out.Warning = a.Model + " is not a model that this gateway knows; calls fail unless the provider has it"
	}
	return out, nil
}

func (c *change) aliasDelete() (any, error) {
	if err := c.match(c.changed("alias")); err != nil {
		return nil, err
	}
	name := c.query("alias")
	if name == "" {
		return nil, apierr.Invalid("alias", "alias is required.")
	}
	if _, ok := c.Get(storage.AliasPrefix + name); !IsAliasName(name) || !ok {
		return nil, apierr.New(404, "alias_not_found", "No alias has this name. GET /api/models/alias lists the aliases.")
	}
	c.Touch("alias")
	c.Del(storage.AliasPrefix + name)
	c.target, c.status = name, 204
	return nil, nil
}

func (c *change) customList() (any, error) {
	return listOf(c, "custom", c.CustomModels(), func(row *storage.CustomModel) store.CustomModel { return row.CustomModel })
}

func (c *change) customCreate() (any, error) {
	if err := c.match(c.changed("custom")); err != nil {
		return nil, err
	}
	in := c.input()
	in.only("id", "type", "providerAlias", "name", "contextLength", "maxTokens")
	m := readCustom(in)
	if all := namesOf(c.Tx).Prefixes; in.Err == nil && m.ProviderAlias != "" && !slices.Contains(all, m.ProviderAlias) {
		in.fail("providerAlias", "names no provider or prefix of this machine: %s%s", m.ProviderAlias,
			didYouMean(catalog.Closest(m.ProviderAlias, all)))
	}
	if m.ID == "" {
		in.fail("id", "is required")
	}
	if m.ProviderAlias == "" {
		in.fail("providerAlias", "is required")
	}
	known := false
	for _, t := range customTypes {
		known = known || t == m.Type
	}
	if !known {
		in.fail("type", "must be one of%s", strings.Join(customTypes, " "))
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	key := storage.CustomModelKey(m.Type, m.ProviderAlias, m.ID)
	var row storage.CustomModel
	if !c.Load(key, &row) && len(c.List(storage.CustomModelPrefix)) >= MaxCustoms {
		return nil, apierr.New(409, "too_many", "A machine has at most %d custom models.", MaxCustoms)
	}
	row.CustomModel = m
	c.PutCustom(&row)
	c.target, c.fields = m.ProviderAlias+"/"+m.ID, in.names
	c.status, c.etag = 201, c.changed("custom")
	return m, nil
}

// customDelete removes ?providerAlias=&id=, of one type when it is given, else
// of every type.
func (c *change) customDelete() (any, error) {
	if err := c.match(c.changed("custom")); err != nil {
		return nil, err
	}
	alias, id, typ := c.query("providerAlias"), c.query("id"), c.query("type")
	if alias == "" || id == "" {
		return nil, apierr.Invalid("id", "providerAlias and id are required.")
	}
	found := false
	for _, m := range c.CustomModels() {
		if m.ProviderAlias == alias && m.ID == id && (typ == "" || typ == m.Type || typ == "llm" && m.Type == "") {
			found = true
			c.Del(storage.CustomModelKey(m.Type, m.ProviderAlias, m.ID))
		}
	}
	if !found {
		return nil, apierr.New(404, "model_not_found", "No custom model has this id. GET /api/models/custom lists them.")
	}
	c.Touch("custom")
	c.target, c.status = alias+"/"+id, 204
	return nil, nil
}

func (c *change) disabledList() (any, error) {
	out := struct {
		Disabled map[string][]string `json:"disabled"`
	}{map[string][]string{}}
	for _, d := range c.Disabled() {
		if alias := c.query("providerAlias"); alias == "" || alias == d.ProviderAlias {
			out.Disabled[d.ProviderAlias] = d.IDs
		}
	}
	c.etag = c.changed("disabled")
	return out, nil
}

// disabledAdd hides models: {"providerAlias":"openai","ids":["gpt-4"]}.
func (c *change) disabledAdd() (any, error) {
	if err := c.match(c.changed("disabled")); err != nil {
		return nil, err
	}
	in := c.input()
	in.only("providerAlias", "ids")
	alias, _ := in.text("providerAlias", 96)
	ids, _ := in.texts("ids", MaxHidden, 256)
	if !IsAlias(alias) && provider.Lookup(alias) == nil {
		in.fail("providerAlias", "must be an alias or a provider id")
	}
	if len(ids) == 0 {
		in.fail("ids", "must name at least one model")
	}
	for _, id := range ids {
		if provider.CheckModel(id) != nil {
			in.fail("ids", "has an unusable model id")
		}
	}
	if err := in.failed(); err != nil {
		return nil, err
	}
	var row storage.DisabledModels
	if !c.Load(storage.DisabledPrefix+alias, &row) && len(c.List(storage.DisabledPrefix)) >= MaxDisabled {
		return nil, apierr.New(409, "too_many", "At most %d aliases may have disabled models.", MaxDisabled)
	}
	row.ProviderAlias, row.IDs = alias, merged(row.IDs, ids)
	if len(row.IDs) > MaxHidden {
		return nil, apierr.New(409, "too_many", "At most %d models of an alias may be disabled.", MaxHidden)
	}
	c.PutDisabled(&row)
	c.target, c.fields, c.etag = alias, in.names, c.changed("disabled")
	return row.DisabledModels, nil
}

// disabledDelete shows ?providerAlias=&id= again, all of the alias without id.
func (c *change) disabledDelete() (any, error) {
	if err := c.match(c.changed("disabled")); err != nil {
		return nil, err
	}
	alias, id := c.query("providerAlias"), c.query("id")
	if alias == "" {
		return nil, apierr.Invalid("providerAlias", "providerAlias is required.")
	}
	var row storage.DisabledModels
	if !IsAlias(alias) && provider.Lookup(alias) == nil || !c.Load(storage.DisabledPrefix+alias, &row) {
		return nil, apierr.New(404, "model_not_found",
			"No model of this alias is disabled. GET /api/models/disabled lists the disabled models.")
	}
	var remaining []string
	for _, m := range row.IDs {
		if id != "" && m != id {
			remaining = append(remaining, m)
		}
	}
	if len(remaining) == len(row.IDs) {
		return nil, apierr.New(404, "model_not_found", "This model is not disabled.")
	}
	c.Touch("disabled")
	if row.IDs = remaining; len(remaining) == 0 {
		c.Del(storage.DisabledPrefix + alias)
	} else {
		c.PutDisabled(&row)
	}
	c.target, c.status = strings.TrimSuffix(alias+"/"+id, "/"), 204
	return nil, nil
}

// availability lists what cannot be used at the moment, until when and why.
func (c *change) availability() (any, error) {
	type row struct {
		ConnectionID string `json:"connectionId"`
		Provider     string `json:"provider"`
		Name         string `json:"name,omitempty"`
		Model        string `json:"model,omitempty"`
		Reason       string `json:"reason"`
		Until        int64  `json:"until,omitempty"` // none: until someone acts
		WaitMs       int64  `json:"waitMs,omitempty"`
		Failures     int    `json:"failures,omitempty"`
		Since        int64  `json:"since,omitempty"`
		LastError    string `json:"lastError,omitempty"`
	}
	out := list[row]{"list", []row{}}
	cools := c.Cooldowns()
	for _, conn := range c.Connections() {
		base := row{ConnectionID: conn.ID, Provider: conn.Provider, Name: conn.Name, LastError: c.LastError(&conn)}
		if conn.Status != "" {
			r := base
			r.Reason = conn.Status
			out.Data = append(out.Data, r)
		}
		if health, _ := c.Health(&conn, nil); health == storage.HealthSealed {
			r := base
			r.Reason = health
			out.Data = append(out.Data, r)
		}
		for _, cool := range cools {
			if cool.ConnectionID != conn.ID || cool.Until <= c.Now {
				continue
			}
			r := base
			r.Model, r.Reason, r.Until, r.WaitMs = cool.Model, cool.Reason, cool.Until, cool.Until-c.Now
			r.Failures, r.Since = cool.Failures, cool.Since
			out.Data = append(out.Data, r)
		}
	}
	return out, nil
}
