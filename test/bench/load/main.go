// Command load sends one request over and over to a server on this machine and
// checks each answer. It writes prepared bytes to connections of its own, so that
// it takes less CPU than the server beside it.
//
//	load -url URL [-n 1000] [-c 32] [-seconds 30] [-method GET] [-header 'name: value'] [-ends TEXT] [-pieces 1] [-equal] [-patient] < body
//
// It stops after n requests or after the seconds, and prints
//
//	{"n","wrong","seconds","p50_us","p99_us","bytes"}
//
// An answer is right with status 200, the end asked for, at least the given
// number of pieces that came by themselves, and, where that is asked for, the
// length of all other answers. A patient client waits as Retry-After says; others
// ask again at once.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type headers map[string]string

func (h headers) String() string { return "" }
func (h headers) Set(s string) error {
	name, value, _ := strings.Cut(s, ": ")
	h[name] = value
	return nil
}

// client is one connection's share of the work.
type client struct {
	host  string
	conn  net.Conn // nil until the first request, and after a failure
	in    *bufio.Reader
	got   []byte
	times []time.Duration
	wrong int
	bytes int64
	wait  int    // seconds that the last answer asks for
	first string // what the first wrong answer was
}

func main() {
	target := flag.String("url", "", "where to send it")
	pieces := flag.Int("pieces", 1, "pieces that a right answer comes in")
	flag.BoolVar(&patient, "patient", false, "wait as Retry-After says")
	flag.BoolVar(&equal, "equal", false, "right answers have one length")
	n := flag.Int64("n", 1000, "requests at most")
	c := flag.Int("c", 32, "connections")
	seconds := flag.Int("seconds", 30, "time at most")
	ends := flag.String("ends", "", "what a right answer ends with")
	method := flag.String("method", http.MethodGet, "another one sends the body on standard input")
	head := headers{}
	flag.Var(head, "header", "a header field, may be repeated")
	flag.Parse()

	u, err := url.Parse(*target)
	if err != nil || !net.ParseIP(u.Hostname()).IsLoopback() {
		fmt.Fprintln(os.Stderr, "load: the target must be a loopback address")
		os.Exit(2)
	}
	var request []byte
	if *method != http.MethodGet {
		body, _ := io.ReadAll(os.Stdin)
		head["content-length"] = strconv.Itoa(len(body))
		request = append(encode(*method, u, head), body...)
	} else {
		request = encode(http.MethodGet, u, head)
	}

	var left atomic.Int64
	left.Store(*n)
	end := time.Now().Add(time.Duration(*seconds) * time.Second)
	clients := make([]client, *c)
	var wg sync.WaitGroup
	from := time.Now()
	for i := range clients {
		cl := &clients[i]
		cl.host = u.Host
		wg.Go(func() {
			for left.Add(-1) >= 0 && time.Now().Before(end) {
				cl.one(request, []byte(*ends), *pieces)
				if patient && cl.wait > 0 {
					time.Sleep(min(time.Duration(cl.wait)*time.Second, time.Until(end)))
				}
			}
			cl.close()
		})
	}
	wg.Wait()
	report(clients, time.Since(from))
}

// length of every right answer, once the first is there.
var (
	length atomic.Int64
	equal  bool // is checked

	patient bool
)

// encode returns the head of a request.
func encode(method string, u *url.URL, head headers) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nhost: %s\r\nuser-agent: load\r\n", method, u.RequestURI(), u.Host)
	for k, v := range head {
		b = fmt.Appendf(b, "%s: %s\r\n", k, v)
	}
	return append(b, "\r\n"...)
}

// read reads a body into got and counts the pieces that it comes in.
func read(got []byte, body io.Reader) (_ []byte, pieces int, err error) {
	for {
		if cap(got)-len(got) < 16<<10 {
			got = slices.Grow(got, max(64<<10, cap(got)))
		}
		n, err := body.Read(got[len(got):cap(got)])
		got = got[:len(got)+n]
		if n > 0 {
			pieces++
		}
		if err == io.EOF {
			return got, pieces, nil
		}
		if err != nil {
			return got, pieces, err
		}
	}
}

// send sends the request, and returns the status and the body of the answer, which
// is valid until the next call.
func (c *client) send(request []byte) (status int, got []byte, pieces int, err error) {
	if c.conn == nil {
		if c.conn, err = net.Dial("tcp", c.host); err != nil {
			return 0, nil, 0, err
		}
		c.in = bufio.NewReaderSize(c.conn, 16<<10)
	}
	c.conn.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err = c.conn.Write(request); err != nil {
		return 0, nil, 0, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, nil, 0, err
	}
	c.wait, _ = strconv.Atoi(resp.Header.Get("Retry-After")) // 0 without one
	c.got, pieces, err = read(c.got[:0], resp.Body)
	if err == nil && resp.Close {
		c.close()
	}
	return resp.StatusCode, c.got, pieces, err
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *client) one(request, ends []byte, want int) {
	from := time.Now()
	status, got, pieces, err := c.send(request)
	c.bytes += int64(len(got))
	if err != nil || status != 200 || !bytes.HasSuffix(got, ends) || pieces < want {
		c.fail(fmt.Sprintf("%d %v in %d pieces %.200q", status, err, pieces, got))
		c.close()
		return
	}
	size := int64(len(got))
	if length.CompareAndSwap(0, size); equal && length.Load() != size {
		c.fail(fmt.Sprintf("%d bytes, others have %d", size, length.Load()))
		return
	}
	c.times = append(c.times, time.Since(from))
}

func (c *client) fail(what string) {
	if c.wrong == 0 {
		c.first = what
	}
	c.wrong++
}

func report(clients []client, took time.Duration) {
	var times []time.Duration
	var wrong int
	var size int64
	var first string
	for _, c := range clients {
		times = append(times, c.times...)
		wrong += c.wrong
		size += c.bytes
		if first == "" {
			first = c.first
		}
	}
	slices.Sort(times)
	at := func(q float64) float64 {
		if len(times) == 0 {
			return 0
		}
		return float64(times[int(q*float64(len(times)-1))].Nanoseconds()) / 1000
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"n": len(times), "wrong": wrong, "first_wrong": first, "seconds": took.Seconds(),
		"p50_us": at(0.5), "p99_us": at(0.99), "bytes": size,
	})
}
