package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"weir/pkg/machine/storage"
	"weir/pkg/wire/contentcoding"
)

const (
	keepLogs     = 30 * storage.Day // that are not delivered
	maxLogObject = 1<<20 - 1<<10    // bytes; a row has at most 1 MiB
)

// shipLogs makes deliveries of the lines that have waited for long enough, one for each
// hour in which the requests came in.
func shipLogs(t *storage.Tx) {
	t.TakeLogs(func(id string, lines []string) {
		hours := map[string][]string{}
		for _, line := range lines {
			hour := storage.LogHour(line)
			hours[hour] = append(hours[hour], line)
		}
		for _, hour := range slices.Sorted(maps.Keys(hours)) {
			shipHour(t, id, hour, hours[hour])
		}
	})
}

// shipHour makes a delivery of the lines of an hour, or several if an object would be too
// large.
func shipHour(t *storage.Tx, id, hour string, lines []string) {
	body, digest := logObject(lines)
	if len(body) > maxLogObject && len(lines) > 1 {
		shipHour(t, id, hour, lines[:len(lines)/2])
		shipHour(t, id, hour, lines[len(lines)/2:])
		return
	}
	seq := func(line string) int64 { return gjson.Get(line, "seq").Int() }
	t.Enqueue(storage.Delivery{
		DestinationID: id, Type: storage.Lines, Body: body, Entries: int64(len(lines)), Until: t.Now + keepLogs,
		Title: fmt.Sprintf("machine=%s/date=%s/hour=%s/%d-%d-%s.jsonl.gz", t.ID, hour[:10], hour[11:],
			seq(lines[0]), seq(lines[len(lines)-1]), digest),
	})
}

// logObject returns the lines as a gzip file, and the first characters of their digest. They are a
// part of the name of the object: numbers begin again after a restore, and other lines must not
// replace earlier ones.
func logObject(lines []string) (body []byte, digest string) {
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	text := make([]byte, 0, size) // the only copy: there may be 8 MiB
	for _, line := range lines {
		text = append(append(text, line...), '\n')
	}
	sum := sha256.Sum256(text)
	return contentcoding.Gzip(text), hex.EncodeToString(sum[:6])
}
