package store

import "testing"

func TestAmountText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "$0", 1: "$0.000000001", 12: "$0.000000012", 123: "$0.00000012", 5_000_000: "$0.005", 12_345_678: "$0.012",
		100_000_000: "$0.10", 964_321_000: "$0.96", 1_000_000_000: "$1", 40_123_456_789: "$40.12", 50_000_000_000: "$50", 999_999_999_999: "$1000",
	} {
		if got := AmountText(USD, n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for unit, want := range map[string]string{Requests: "1 request", Tokens: "1 token"} {
		if got := AmountText(unit, 1); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got := AmountText(unit, 2000); got != "2000 "+unit {
			t.Errorf("%s", got)
		}
	}
}
