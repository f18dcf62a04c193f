package models

import (
	"strings"

	"weir/pkg/catalog"
	"weir/pkg/snapshot"
)

// reprice sets the prices that count (docs/prices.md): the machine's own, else those of
// the operator's source in place of the static catalogue's. A price that the upstream's
// list states goes before the latter.
func reprice(m *snapshot.Machine, list []Entry) {
	if m == nil {
		return
	}
	own, update := m.Settings.ModelPrices, m.Catalog()
	refreshed := update != nil && update.Text != ""
	if len(own) == 0 && !refreshed {
		return
	}
	aliases := map[string]string{} // of the catalogue, by the alias that a list has
	for _, s := range scopes(m.Machine) {
		aliases[s.out] = s.static
	}
	for i := range list {
		e := &list[i]
		alias, ok := aliases[e.OwnedBy]
		if !ok {
			alias = e.OwnedBy
		}
		price, isOwn := own[e.ID]
		if rest, prefixed := strings.CutPrefix(e.ID, e.OwnedBy+"/"); prefixed && !isOwn {
			price, isOwn = own[alias+"/"+rest]
		}
		if isOwn {
			e.setPrice(catalog.Price(price))
			continue
		}
		if !refreshed {
			continue
		}
		id := update.UpstreamID(alias, e.Model.ID)
		if p := update.Price(alias, id); p != "" && e.Model.Price == catalog.PriceOf(alias, id) {
			e.setPrice(p)
		}
	}
}

// static returns the alias in the catalogue of an alias that a list has.
func static(m *snapshot.Machine, alias string) string {
	if m != nil {
		for _, s := range scopes(m.Machine) {
			if s.out == alias {
				return s.static
			}
		}
	}
	return alias
}

// setPrice sets the price in a copy of the model, which is shared.
func (e *Entry) setPrice(p catalog.Price) {
	model := *e.Model
	model.Price = p
	e.Model = &model
}
