package videos

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"

	"weir/pkg/machine/rpc"
)

const (
	maxName   = 1024    // bytes of an upstream's own name of a job that its request_id contains
	maxStored = 8 << 10 // bytes of one that is stored with the job
	maxID     = 1536    // bytes of a request_id, enough for an encoded name
)

// coded begins a request_id that stands for a name which cannot be a segment of
// a path as it is: Google's operations, an address to poll, a name with a slash
// or a blank.
const coded = "b64."

// digest begins a request_id that stands for a name which is too long for a path.
// The name is stored with the job.
const digest = "sha256."

// idOf returns the request_id of an upstream's own name of a job.
func idOf(name string) string {
	switch {
	case len(name) > maxName:
		sum := sha256.Sum256([]byte(name))
		return digest + base64.RawURLEncoding.EncodeToString(sum[:])
	case safeID(name) && !strings.HasPrefix(name, coded) && !strings.HasPrefix(name, digest):
		return name
	}
	return coded + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// polledID returns the request_id of the job that a client polls, which names it by its
// request_id or by the upstream's own name.
func polledID(param string) string {
	if safeID(param) && (len(param) <= maxName || strings.HasPrefix(param, coded)) {
		return param
	}
	return idOf(param)
}

// nameOf returns the upstream's own name of a job that has a request_id.
func nameOf(id string, job *rpc.Job) (string, bool) {
	if job.Name != "" {
		return job.Name, true
	}
	rest, ok := strings.CutPrefix(id, coded)
	if !ok {
		return id, true
	}
	name, err := base64.RawURLEncoding.DecodeString(rest)
	return string(name), err == nil
}

// safeID reports whether a request_id may stand in a path as it is: a segment of the
// characters that need no encoding (RFC 3986, pchar) that is no dot segment.
func safeID(id string) bool {
	if len(id) == 0 || len(id) > maxID || strings.Trim(id, ".") == "" {
		return false
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("-._~:@!$&'()*+,;=", c) >= 0) {
			return false
		}
	}
	return true
}

// lostJobs are the jobs whose record could not be stored yet, of this isolate.
type lostJobs struct {
	mu   sync.Mutex
	jobs []lostJob
}

type lostJob struct {
	machineID string
	job       rpc.Job
}

// maxLost bounds what is remembered; the oldest goes first.
const maxLost = 256

func (l *lostJobs) add(machineID string, j *rpc.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(machineID, j.ID)
	if len(l.jobs) == maxLost {
		l.jobs = append(l.jobs[:0], l.jobs[1:]...)
	}
	l.jobs = append(l.jobs, lostJob{machineID, *j})
}

func (l *lostJobs) find(machineID, id string) *rpc.Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.jobs {
		if l.jobs[i].machineID == machineID && l.jobs[i].job.ID == id {
			j := l.jobs[i].job
			return &j
		}
	}
	return nil
}

func (l *lostJobs) drop(machineID, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(machineID, id)
}

func (l *lostJobs) remove(machineID, id string) {
	for i := range l.jobs {
		if l.jobs[i].machineID == machineID && l.jobs[i].job.ID == id {
			l.jobs = append(l.jobs[:i], l.jobs[i+1:]...)
			return
		}
	}
}
