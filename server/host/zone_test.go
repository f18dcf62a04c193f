package host

import "testing"

func TestZoneOffset(t *testing.T) {
	const january, july = 1_767_268_800_000, 1_782_907_200_000 // 2026-01-01T12:00Z, 2026-07-01T12:00Z
	for _, tt := range []struct {
		name string
		at   int64
		want int
		ok   bool
	}{
		{"Europe/Berlin", january, 3600, true}, {"Europe/Berlin", july, 7200, true}, {"America/New_York", january, -18000, true},
		{"Asia/Kathmandu", july, 20700, true}, {"UTC", july, 0, true}, {"", july, 0, false}, {"Local", july, 0, false}, {"Europe/Nowhere", july, 0, false}, {"../etc/passwd", july, 0, false},
	} {
		if got, ok := zoneOffset(tt.name, tt.at); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: got %d %v, want %d %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}
