package snapshot

import (
	"testing"
	"time"
)

// Any replica in KV is refused, or is a machine that calls can use.
func FuzzParse(f *testing.F) {
	f.Add(`{"v":1,"machineId":"m","connections":[{"id":"a","provider":"openai","secrets":{"apiKey":"x"}}],"keys":[{"id":"k","digest":"00"}],"budgets":[{"id":"b"}],"cooldowns":[{"connectionId":"a","until":1,"reason":"x"}]}`)
	f.Add(`{"v":1,"machineId":"m","combos":[{"name":"c","models":["c"]}],"modelAliases":{"a":"a"},"disabledModels":[{}],"quotas":[{}],"refusals":[{}]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		m, err := Parse("m", []byte(raw))
		if err != nil {
			return
		}
		if m.ID != "m" {
			t.Errorf("of the machine %q", m.ID)
		}
		m.FindKey([32]byte{}, func() time.Time { return time.UnixMilli(1) })
		m.AnyRefused()
	})
}
