package secret

// Sealed is a credential encrypted by store.Keyring, as it is stored and
// cached.
type Sealed string
