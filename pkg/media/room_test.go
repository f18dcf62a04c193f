package media_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"weir/pkg/apierr"
	"weir/pkg/auth"
	"weir/pkg/edge"
	"weir/pkg/media"
	"weir/pkg/stream"
	"weir/pkg/upstream"
)

// looks lets a waiting call look again: each pause runs then, with the number
// of pauses so far.
type looks struct {
	n    int
	then func(n int) error
}

func (l *looks) Pause(context.Context, time.Duration) error {
	l.n++
	return l.then(l.n)
}

// body is a call whose body has n bytes; declared is what the client says.
func body(n int, declared int64) *auth.Call {
	return &auth.Call{Request: &edge.Request{Body: stream.FromString(strings.Repeat("a", n)), Length: declared}}
}

func TestABodyWaitsForRoom(t *testing.T) {
	var gives []func()
	pause := &looks{}
	r := &media.Room{Max: 100, Pause: pause}
	hold := func(n int) error {
		_, give, err := r.Hold(context.Background(), body(n, int64(n)), 100)
		if err == nil {
			gives = append(gives, give)
		}
		return err
	}
	if err := hold(80); err != nil || pause.n != 0 {
		t.Fatalf("the first waits: %v, %d looks", err, pause.n)
	}
	pause.then = func(n int) error {
		if n == 3 {
			gives[0]()
		}
		return nil
	}
	if err := hold(70); err != nil || pause.n != 3 || r.Used() != 70 {
		t.Errorf("%v after %d looks, %d bytes held", err, pause.n, r.Used())
	}
	if err := hold(30); err != nil || pause.n != 3 {
		t.Errorf("what fits does not wait: %v, %d looks", err, pause.n)
	}
}

// A large body is not kept out by small ones that come later and would fit.
func TestTheEarliestIsFirst(t *testing.T) {
	pause := &looks{}
	r := &media.Room{Max: 100, Pause: pause}
	_, give, _ := r.Hold(context.Background(), body(90, 90), 100)
	var late error
	pause.then = func(n int) error {
		switch n {
		case 1: // of the large one; all the looks of the small one are in here
			_, _, late = r.Hold(context.Background(), body(5, 5), 100)
		case 152:
			give()
		}
		return nil
	}
	_, _, err := r.Hold(context.Background(), body(60, 60), 100)
	var e *apierr.Error
	if err != nil || !errors.As(late, &e) || e.Status != 503 || pause.n != 152 {
		t.Errorf("the first %v, the later %v, %d looks", err, late, pause.n)
	}
}

func TestAWaitEnds(t *testing.T) {
	gone := errors.New("gone")
	tests := []struct {
		name  string
		pause error
		looks int
		want  error
	}{
		{"after_a_while", nil, 150, nil},
		{"when_the_client_leaves", gone, 1, upstream.ErrCanceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pause := &looks{then: func(int) error { return tt.pause }}
			r := &media.Room{Max: 100, Pause: pause}
			_, give, _ := r.Hold(context.Background(), body(90, 90), 100)
			_, _, err := r.Hold(context.Background(), body(50, 50), 100)
			var e *apierr.Error
			if tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && (!errors.As(err, &e) || e.Status != 503 || e.RetryAfter != time.Second) {
				t.Errorf("got %v", err)
			}
			if pause.n != tt.looks || r.Used() != 90 {
				t.Errorf("%d looks, %d bytes held", pause.n, r.Used())
			}
			give()
			if _, _, err := r.Hold(context.Background(), body(100, 100), 100); err != nil || pause.n != tt.looks {
				t.Errorf("one that gave up stands in the way: %v", err)
			}
		})
	}
}

func TestWhatIsCounted(t *testing.T) {
	r := &media.Room{Max: 100}
	_, give, err := r.Hold(context.Background(), body(20, -1), 60)
	if err != nil || r.Used() != 20 {
		t.Errorf("of a body whose length was not told: %v, %d bytes", err, r.Used())
	}
	if _, _, err := r.Hold(context.Background(), body(70, 70), 60); !errors.Is(err, stream.ErrTooLarge) || r.Used() != 20 {
		t.Errorf("over the limit: %v, %d bytes", err, r.Used())
	}
	if _, _, err := r.Hold(context.Background(), body(70, -1), 60); !errors.Is(err, stream.ErrTooLarge) || r.Used() != 20 {
		t.Errorf("over the limit, as it turned out: %v, %d bytes", err, r.Used())
	}
	if give(); r.Used() != 0 {
		t.Errorf("%d bytes are left", r.Used())
	}
	// One that is larger than all the room is let in when it is alone.
	if _, give, err = r.Hold(context.Background(), body(120, 120), 200); err != nil {
		t.Fatal(err)
	}
	give()
}
