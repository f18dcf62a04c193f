package manage

import (
	"weir/pkg/machine/storage"
	"weir/pkg/wire/secret"
)

// healthView is the answer to GET /api/health.
type healthView struct {
	Object string `json:"object"`
	// OK reports that no part below needs attention.
	OK  bool  `json:"ok"`
	Now int64 `json:"now"` // the gateway's clock, Unix milliseconds
	// Configuration is the size of what each instance of the gateway loads.
	Configuration struct {
		Bytes    int `json:"bytes"`
		MaxBytes int `json:"maxBytes"`
	} `json:"configuration"`
	// File is the file that the server has the configuration from; missing without one.
	File *ConfigFile `json:"file,omitempty"`
	// Replica is the copy of the configuration in KV; it is missing on a platform
	// without one.
	Replica *replicaView `json:"replica,omitempty"`
	// Alerts are notifications that have not been delivered.
	Alerts struct {
		Waiting int `json:"waiting"`
		Failing int `json:"failing"` // tried at least once
	} `json:"alerts"`
	AuditRecords int64 `json:"auditRecords"` // since the machine was created
	// Credentials are the accounts and destinations by the key of CREDENTIALS_KEY that has
	// sealed their secrets.
	Credentials struct {
		Unreadable int `json:"unreadable"` // by a key that is not set
		// Earlier are sealed by the second key; missing if one is set alone.
		Earlier *int `json:"earlier,omitempty"`
	} `json:"credentials"`
}

type replicaView struct {
	Pending     bool  `json:"pending"` // a change is not written yet
	PublishedAt int64 `json:"publishedAt,omitempty"`
	Failures    int   `json:"failures"` // in a row
}

// health answers GET /api/health: the health of the gateway for this machine. An answer
// means that its object and its storage work.
func (c *change) health() (any, error) {
	v := healthView{Object: "health", Now: c.Now, AuditRecords: c.Meta.AuditSeq}
	v.Configuration.Bytes, v.Configuration.MaxBytes = len(storage.Encode(c.Configuration())), storage.MaxReplica
	v.OK = v.Configuration.Bytes < storage.MaxReplica/10*9
	if !c.Unpublished {
		v.Replica = &replicaView{Pending: c.Meta.Dirty, PublishedAt: c.Meta.PutAt, Failures: c.Meta.PutFails}
		v.OK = v.OK && c.Meta.PutFails == 0
	}
	if c.o.ConfigFile != nil {
		v.File = c.o.ConfigFile(c.ID)
		v.OK = v.OK && (v.File == nil || v.File.State != "failed")
	}
	v.Alerts.Waiting, v.Alerts.Failing = c.Waiting(storage.Notification)
	v.OK = v.OK && v.Alerts.Failing == 0
	keys, earlier := c.o.Keyring, 0
	count := func(secrets map[string]secret.Sealed) {
		if !keys.Has(secrets) {
			v.Credentials.Unreadable++
		} else if keys.Earlier(secrets) {
			earlier++
		}
	}
	for _, row := range c.Connections() {
		count(row.Secrets)
	}
	for _, row := range c.Destinations() {
		count(row.Secrets)
	}
	if keys.Rotating() {
		v.Credentials.Earlier = &earlier
	}
	v.OK = v.OK && v.Credentials.Unreadable == 0
	return v, nil
}
