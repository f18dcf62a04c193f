package upgrade

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"strings"
)

const (
	namespace = "weir-release" // of the signatures; see ssh-keygen(1), -n
	magic     = "SSHSIG"
)

// verify checks a signature by `ssh-keygen -Y sign` of a text with an Ed25519 key, which signer
// has as "ssh-ed25519 BASE64". The format is PROTOCOL.sshsig of OpenSSH.
func verify(signer string, text, signature []byte) error {
	fields := strings.Fields(signer)
	if len(fields) < 2 || fields[0] != "ssh-ed25519" {
		return errors.New("the key of this build is not an Ed25519 key")
	}
	key, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		return err
	}
	block, _ := pem.Decode(signature)
	if block == nil || block.Type != "SSH SIGNATURE" {
		return errors.New("it has another format")
	}
	body, ok := bytes.CutPrefix(block.Bytes, []byte(magic+"\x00\x00\x00\x01"))
	own, body := next(body)
	space, body := next(body)
	reserved, body := next(body)
	hash, body := next(body)
	raw, _ := next(body)
	if !ok || !bytes.Equal(own, key) || string(space) != namespace {
		return errors.New("it is of another key or purpose; if weir has announced another key, run install.sh of that release")
	}
	var digest []byte
	switch string(hash) {
	case "sha512":
		sum := sha512.Sum512(text)
		digest = sum[:]
	case "sha256":
		sum := sha256.Sum256(text)
		digest = sum[:]
	default:
		return errors.New("it has an unknown hash")
	}
	signed := []byte(magic)
	for _, part := range [][]byte{space, reserved, hash, digest} {
		signed = append(binary.BigEndian.AppendUint32(signed, uint32(len(part))), part...)
	}
	kind, rest := next(key)
	public, _ := next(rest)
	form, rest := next(raw)
	sig, _ := next(rest)
	if string(kind) != "ssh-ed25519" || string(form) != "ssh-ed25519" || len(public) != ed25519.PublicKeySize ||
		!ed25519.Verify(public, signed, sig) {
		return errors.New("the text was changed")
	}
	return nil
}

// next cuts a string with its length before it, as SSH writes them, off b. Both are nil if b is
// too short.
func next(b []byte) (one, rest []byte) {
	if len(b) < 4 {
		return nil, nil
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if b = b[4:]; n > uint64(len(b)) {
		return nil, nil
	}
	return b[:n], b[n:]
}
