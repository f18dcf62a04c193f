package store

// Bounds of the settings of captures.
const (
	DefaultCaptureHours = 24
	MaxCaptureHours     = 7 * 24
)

// CapturePercentOf returns the share of the calls with a key whose bodies are stored, in
// percent. The key is nil for calls without one.
func (s *Settings) CapturePercentOf(k *Key) int {
	if k != nil && k.CapturePercent != nil {
		return *k.CapturePercent
	}
	return s.CapturePercent
}

// CaptureHoursOf returns for how many hours the bodies of calls with the key are stored.
func (s *Settings) CaptureHoursOf(k *Key) int {
	switch {
	case k != nil && k.CaptureHours > 0:
		return k.CaptureHours
	case s.CaptureHours > 0:
		return s.CaptureHours
	}
	return DefaultCaptureHours
}
