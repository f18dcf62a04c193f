// Package ir is the middle form between the dialects of chat: requests of
// messages of blocks, answers, and the events of streams, with what several
// dialects need to read and write them.
//
// A dialect reads its JSON into this form and writes its JSON from it. It never
// imports another dialect.
package ir
