// Package contract holds the numbers on which the two halves of the bridge
// agree: the Go program and the JavaScript that the platform runs.
//
// It is the source of worker/js/contract.mjs, which has every constant under
// the same name in capitals (TooLarge is TOO_LARGE), the limits of a client's body of
// package stream and the header fields of package clientheader. After a change run
// go generate ./worker/contract; a test fails if the file is stale.
package contract

//go:generate go run ./generate ../js/contract.mjs

// How an operation of the host ended.
const (
	OK          int32 = iota
	Network           // no connection, or it broke
	Timeout           // the time limit of the operation
	Canceled          // the client left
	TooLarge          // the body is over the limit
	EndOfBody         // nothing is left to read
	NoTLS             // the TLS handshake failed
	Budget            // the platform allows no more calls for this request
	BodyIdle          // silence within a body
	BodyTimeout       // the time limit passed after the head had come
	NoMemory          // no memory for the body became free
	Cut               // the answer broke off after its head
)

// How a stream ended that Go watches or transforms.
const (
	EndedCleanly  int32 = iota
	EndedReset          // the source broke off
	EndedIdle           // the source was silent for too long
	EndedByClient       // the client left
	EndedFull           // no memory for the next piece became free
)

// The events that have no request.
const (
	ObjectCall int32 = iota
	Alarm
	Cron
)

// The body of a request, instead of its length.
const (
	NoBody    int32 = -1
	BodyLater int32 = -2 // Go asks for it
)

// The kinds of messages of a WebSocket.
const (
	TextMessage int32 = iota + 1
	BinaryMessage
)

// The flags of an upstream call.
const (
	Outlive int32 = 1 // it continues when the client leaves
)

// The answer of weir_push, instead of a length, if there is no memory for the piece.
const (
	NotReady int32 = -1 << 31
)

// Answers of look-ups and of the storage of an object, instead of a length.
const (
	Missing      int32 = -1
	StorageFault int32 = -2
)

// The answer to the end of an operation that had ended before.
const (
	Dropped int32 = -1
)

// The length of the value of a row to delete.
const (
	DeletedRow int32 = -1
)
