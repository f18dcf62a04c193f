//go:build linux || darwin

package program

import "syscall"

// diskSpace returns how many bytes are free where a folder is, and how many there are; 0 if
// that is not known.
func diskSpace(folder string) (free, size int64) {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0, 0
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize)
}
