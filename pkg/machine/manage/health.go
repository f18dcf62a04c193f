package manage

import "weir/pkg/machine/storage"

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
	return v, nil
}
