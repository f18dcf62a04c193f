//go:build js && wasm

package bridge

import "unsafe"

// The host's side of the bridge; worker/js/imports.mjs documents each function.

//go:wasmimport host fetch
func hostFetch(op, call int32, head unsafe.Pointer, headLen int32, body unsafe.Pointer, bodyLen, stream, headerMs,
	totalMs, idleMs int32, maxBody float64, flags int32)

//go:wasmimport host object
func hostObject(op, call int32, name unsafe.Pointer, nameLen int32, verb unsafe.Pointer, verbLen int32,
	body unsafe.Pointer, bodyLen, totalMs int32)

//go:wasmimport host pause
func hostPause(op, ms int32)

//go:wasmimport host dial
func hostDial(op, call int32, address unsafe.Pointer, n, timeoutMs int32)

//go:wasmimport host socket_tls
func hostSocketTLS(op, socket int32, host unsafe.Pointer, n int32)

//go:wasmimport host socket_read
func hostSocketRead(op, socket int32)

//go:wasmimport host socket_write
func hostSocketWrite(op, socket int32, p unsafe.Pointer, n int32)

//go:wasmimport host socket_close
func hostSocketClose(socket int32)

//go:wasmimport host ws_accept
func hostWSAccept(call, template int32, head unsafe.Pointer, headLen int32) int32

//go:wasmimport host ws_dial
func hostWSDial(op, call int32, head unsafe.Pointer, headLen, headerMs int32, maxBody float64)

//go:wasmimport host ws_next
func hostWSNext(op, socket int32)

//go:wasmimport host ws_send
func hostWSSend(socket int32, data unsafe.Pointer, n, kind int32) int32

//go:wasmimport host ws_close
func hostWSClose(socket, code int32, reason unsafe.Pointer, n int32)

//go:wasmimport host ws_silent
func hostWSSilent(socket int32) float64

//go:wasmimport host ws_evict
func hostWSEvict(socket, code int32, reason unsafe.Pointer, n int32)

//go:wasmimport host ws_relay
func hostWSRelay(socket, to int32, texts unsafe.Pointer, n, everyMs int32)

//go:wasmimport host ws_relayed
func hostWSRelayed(op, socket int32)

//go:wasmimport host read
func hostRead(op, stream, ms int32)

//go:wasmimport host read_all
func hostReadAll(op, call, stream int32, maxBytes float64, idleMs, totalMs int32)

//go:wasmimport host gather
func hostGather(op, stream int32, upTo float64, totalMs, hold int32)

//go:wasmimport host reopen
func hostReopen(held int32) int32

//go:wasmimport host digest
func hostDigest(op, held int32)

//go:wasmimport host discard
func hostDiscard(stream int32)

//go:wasmimport host client_body
func hostClientBody(call int32) int32

//go:wasmimport host prefix
func hostPrefix(head unsafe.Pointer, n, rest int32) int32

//go:wasmimport host parts
func hostParts(list unsafe.Pointer, n int32) int32

//go:wasmimport host memory
func hostMemory(others int32) float64

//go:wasmimport host through
func hostThrough(src, idleMs, beatMs int32, length float64) int32

//go:wasmimport host watch
func hostWatch(src, idleMs, beatMs int32) int32

//go:wasmimport host pipe
func hostPipe(src, idleMs int32, length float64) int32

//go:wasmimport host template
func hostTemplate(number int32, head unsafe.Pointer, headLen int32)

//go:wasmimport host respond
func hostRespond(call, status, template int32, head unsafe.Pointer, headLen int32, body unsafe.Pointer, bodyLen,
	stream int32)

//go:wasmimport host object_respond
func hostObjectRespond(call, status int32, body unsafe.Pointer, bodyLen int32)

//go:wasmimport host keep
func hostKeep(call int32)

//go:wasmimport host changed
func hostChanged(machine unsafe.Pointer, n int32)

//go:wasmimport host done
func hostDone(call int32)

//go:wasmimport host log
func hostLog(level int32, line unsafe.Pointer, n int32)

//go:wasmimport host zone
func hostZone(name unsafe.Pointer, n int32, unixMilli float64) int32

//go:wasmimport host decode
func hostDecode(label unsafe.Pointer, labelLen int32, raw unsafe.Pointer, n int32) int32

//go:wasmimport host variable
func hostVariable(name unsafe.Pointer, n int32) int32

//go:wasmimport host copy
func hostCopy(out unsafe.Pointer)

//go:wasmimport host sign
func hostSign(op int32, key unsafe.Pointer, keyLen int32, data unsafe.Pointer, dataLen int32)

//go:wasmimport host verify
func hostVerify(op int32, alg unsafe.Pointer, algLen int32, key unsafe.Pointer, keyLen int32, data unsafe.Pointer,
	dataLen int32, sig unsafe.Pointer, sigLen int32)

//go:wasmimport host storage_get
func hostStorageGet(call int32, key unsafe.Pointer, keyLen int32, out unsafe.Pointer, size int32) int32

//go:wasmimport host storage_write
func hostStorageWrite(call int32, rows unsafe.Pointer, n int32, alarm float64) int32

//go:wasmimport host storage_list
func hostStorageList(call int32, prefix unsafe.Pointer, prefixLen int32, start unsafe.Pointer, startLen,
	limit int32) int32

//go:wasmimport host storage_rows
func hostStorageRows(out unsafe.Pointer)
