package usage

import (
	"errors"
	"strconv"

	"github.com/tidwall/gjson"
)

// Histogram counts durations. Its buckets grow by a factor of √2: the first ends at
// 16 ms, the last has everything over 524 s. Between these, a percentile is at most a
// fifth away from the true one.
//
// In JSON it is a list of buckets and their counts, without the empty ones:
//
//	[11,3,14,1] is three durations from 512 to 724 ms and one from 1.4 to 2 s
type Histogram [32]uint32

// BucketEnd returns the longest duration of a bucket, in ms.
func BucketEnd(i int) int64 {
	return [2]int64{1024, 1448}[i&1] << (i / 2) >> 6
}

// Observe counts a duration of ms milliseconds.
func (h *Histogram) Observe(ms int64) {
	i := 0
	for i < len(h)-1 && ms > BucketEnd(i) {
		i++
	}
	h[i]++
}

// SizeBuckets is the number of buckets of the tokens of one direction. They end at 4^i.
const SizeBuckets = 15

// outputSizes is the first bucket of the output.
const outputSizes = 16

// observeTokens counts an answer by its tokens. One without any is not counted.
func (h *Histogram) observeTokens(input, output int64) {
	if input > 0 || output > 0 {
		h[sizeOf(input)]++
		h[outputSizes+sizeOf(output)]++
	}
}

func sizeOf(tokens int64) (bucket int) {
	for bucket < SizeBuckets-1 && tokens > 1<<(2*bucket) {
		bucket++
	}
	return bucket
}

// Sizes returns the buckets of one direction of the counts of a histogram of tokens.
func Sizes(counts []int64, output bool) []int64 {
	if len(counts) < outputSizes+SizeBuckets {
		return nil
	}
	if output {
		counts = counts[outputSizes:]
	}
	return counts[:SizeBuckets]
}

// Add adds the counts of o.
func (h *Histogram) Add(o *Histogram) {
	for i := range h {
		h[i] += o[i]
	}
}

// Percentile returns the duration, in ms, that p percent of the durations do not
// exceed: the middle of its bucket, or the end of the first, in which the shortest are
// not told apart. It returns 0 without any duration.
func (h *Histogram) Percentile(p int64) int64 {
	var all int64
	for _, n := range h {
		all += int64(n)
	}
	rest := (all*p + 99) / 100 // durations up to the one asked for
	for i, n := range h {
		if rest -= int64(n); rest <= 0 && n > 0 {
			if i == 0 {
				return BucketEnd(0)
			}
			return BucketEnd(i) * 27 / 32 // ends are apart by √2, middles by its root
		}
	}
	return 0
}

// MarshalJSON implements json.Marshaler.
func (h Histogram) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, n := range h {
		if n == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, ',')
		b = strconv.AppendUint(b, uint64(n), 10)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Histogram) UnmarshalJSON(raw []byte) error {
	var list []uint32
	for _, v := range gjson.ParseBytes(raw).Array() {
		n, err := strconv.ParseUint(v.Raw, 10, 32)
		if err != nil {
			return errors.New("usage: a histogram with an entry that is no count")
		}
		list = append(list, uint32(n))
	}
	*h = Histogram{}
	if len(list)%2 != 0 || len(list) > 2*len(h) {
		return errors.New("usage: a histogram with an invalid number of entries")
	}
	for i := 0; i < len(list); i += 2 {
		if list[i] >= uint32(len(h)) {
			return errors.New("usage: a histogram with an unknown bucket")
		}
		h[list[i]] = list[i+1]
	}
	return nil
}
