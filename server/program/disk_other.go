//go:build !linux && !darwin

package program

// diskSpace returns that it is not known.
func diskSpace(string) (free, size int64) { return 0, 0 }
