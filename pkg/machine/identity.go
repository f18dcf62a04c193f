package machine

import (
	"encoding/json"
	"errors"
	"strings"

	"weir/pkg/machine/rpc"
	"weir/pkg/machine/storage"
	"weir/pkg/people"
	"weir/pkg/wire/apierr"
)

const (
	idpPrefix   = "idp:"        // and the id
	spentPrefix = "signinused:" // and the digest of a state
	maxIDPs     = 20
	pruneEach   = 100  // records of the audit
	maxSpent    = 2000 // states of ten minutes; the oldest are replaced
)

// registryAudit appends a record of the registry, whose audit has no other pruning. Without a generation
// the number of the last record would not be stored.
func registryAudit(t *storage.Tx, rec storage.Record) {
	t.Meta.ID = rpc.RegistryID
	t.Meta.Generation++
	t.AuditRecord(rec)
	if t.Meta.AuditSeq%pruneEach == 0 {
		t.PruneAudit()
	}
}

// idpList returns the identity providers in the order of their ids.
func (o *Object) idpList(r *storage.Call) (any, error) {
	return map[string]any{"data": storage.RowsOf[rpc.IdentityProvider](r.Tx, idpPrefix)}, nil
}

// idpPut stores an identity provider.
func (o *Object) idpPut(r *storage.Call) (any, error) {
	var in, before rpc.IdentityProvider
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsRowID(in.ID) {
		return nil, apierr.Invalid("id", "id is not valid.")
	}
	action := "identity-provider.update"
	if !r.Load(idpPrefix+in.ID, &before) {
		action, before.CreatedAt = "identity-provider.create", r.Now
		if len(r.List(idpPrefix)) >= maxIDPs {
			return nil, apierr.New(409, "too_many", "At most %d identity providers are allowed. Remove one first.", maxIDPs)
		}
	}
	in.CreatedAt = before.CreatedAt
	r.Put(idpPrefix+in.ID, in)
	registryAudit(r.Tx, storage.Record{Actor: "operator", Action: action, Target: in.ID})
	return struct{}{}, nil
}

// idpDelete removes an identity provider.
func (o *Object) idpDelete(r *storage.Call) (any, error) {
	var in, before rpc.IdentityProvider
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsRowID(in.ID) || !r.Load(idpPrefix+in.ID, &before) {
		return nil, apierr.New(404, "identity_provider_not_found", "No identity provider has this id.")
	}
	r.Del(idpPrefix + in.ID)
	registryAudit(r.Tx, storage.Record{Actor: "operator", Action: "identity-provider.delete", Target: in.ID})
	return struct{}{}, nil
}

// signInSpend notes that a state was used, and reports whether it is the first time.
func (o *Object) signInSpend(r *storage.Call) (any, error) {
	var in rpc.SpentState
	if json.Unmarshal(r.Body, &in) != nil || !rpc.IsDigest(in.Digest) {
		return nil, apierr.Invalid("digest", "digest is not valid.")
	}
	var until, oldest int64
	fresh, first := !r.Load(spentPrefix+in.Digest, &until), ""
	rows := r.List(spentPrefix)
	for _, row := range rows {
		if json.Unmarshal(row.Value, &until) != nil || until*1000 <= r.Now {
			r.Del(row.Key)
		} else if first == "" || until < oldest {
			first, oldest = row.Key, until
		}
	}
	if len(rows) >= maxSpent && first != "" {
		r.Del(first)
	}
	r.Put(spentPrefix+in.Digest, in.Until)
	return map[string]bool{"fresh": fresh}, nil
}

// signInFailed appends the record of a sign-in that was refused. It has no part of a token.
func (o *Object) signInFailed(r *storage.Call) (any, error) {
	var in rpc.FailedSignIn
	if json.Unmarshal(r.Body, &in) != nil || len(in.Reason) > 100 || in.Provider != "" && !rpc.IsRowID(in.Provider) {
		return nil, apierr.Invalid("reason", "reason is not valid.")
	}
	registryAudit(r.Tx, storage.Record{Actor: "anonymous", Action: "sign-in.refused", Target: in.Provider, Fields: []string{in.Reason}})
	return struct{}{}, nil
}

// roleRefused appends the record of a call that the role of a person does not include: of the first ones, as of
// sign-ins, so that it cannot push out other records.
func (o *Object) roleRefused(r *storage.Call) (any, error) {
	var in rpc.RoleRefused
	if json.Unmarshal(r.Body, &in) != nil || !people.IsID(in.Person) || len(in.Route) > 100 {
		return nil, apierr.Invalid("person", "person is not valid.")
	}
	if !rpc.IsMachineID(in.MachineID) {
		in.MachineID = ""
	}
	err := attempt(r, storage.DigestOf("role", in.Person), attemptMost)
	if _, waits := errors.AsType[*apierr.Error](err); waits {
		return struct{}{}, nil
	}
	if err != nil {
		return nil, err
	}
	registryAudit(r.Tx, storage.Record{Actor: "person:" + in.Person, Action: "role.refused", Target: in.MachineID,
		Fields: []string{in.Route}})
	return struct{}{}, nil
}

const signInPage = 100 // records of one answer

// signInList returns the newest records of the registry: sign-ins, refusals, and changes of
// identity providers, machines and the operator token.
func (o *Object) signInList(r *storage.Call) (any, error) {
	var in rpc.SignInQuery
	if json.Unmarshal(r.Body, &in) != nil || in.Before < 0 {
		return nil, apierr.Invalid("before", "before must be the number of a record.")
	}
	out := rpc.SignInRecords{Data: []json.RawMessage{}, Names: map[string]string{}}
	last := r.Meta.AuditSeq + 1
	if in.Before > 0 {
		last = min(in.Before, last)
	}
	for seq := last - 1; seq > 0; seq-- {
		var a storage.AuditRow
		var rec storage.Record
		if !r.Load(storage.AuditKey(seq), &a) {
			break
		}
		if len(out.Data) == signInPage {
			out.Next = seq + 1
			break
		}
		out.Data = append(out.Data, a.Record)
		json.Unmarshal(a.Record, &rec)
		if out.Names[rec.Target] == "" && rec.Name != "" {
			out.Names[rec.Target] = rec.Name
		}
		for _, name := range [...]string{rec.Actor, rec.Target} {
			if p, ok := loadPerson(r.Tx, strings.TrimPrefix(name, "person:")); ok {
				out.Names[name] = o.profileOf(&p).Name
			}
		}
	}
	return out, nil
}
