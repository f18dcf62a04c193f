package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"strconv"
)

// The layout of the database's pages, in the byte order of all platforms that
// are built for. See https://pkg.go.dev/go.etcd.io/bbolt, "internal/common".
//
//	page    id u64, flags u16, count u16, overflow u32, then its elements
//	meta    magic u32, version u32, page size u32, flags u32, root u64, sequence u64,
//	        freelist u64, pages u64, transaction u64, FNV-1a of all before u64
//	branch  position u32, key size u32, page u64
//	leaf    flags u32, position u32, key size u32, value size u32
//	bucket  root u64, sequence u64; if root is 0, a page follows
//
// A position counts from its element. Keys and values follow the last element
// without gaps. A page without elements has only zeros after its header.
const (
	pageHeader   = 16
	elementSize  = 16
	metaSize     = 64
	bucketHeader = 16

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketLeaf   = 0x01 // flag of an element

	noFreelist   = ^uint64(0)
	manyFree     = 0xFFFF // a count that stands in the first id
	maxPageSize  = 1 << 24
	maxPages     = 1 << 38
	maxPageDepth = 64
)

// errNoMeta reports that a file does not begin as a database does.
var errNoMeta = errors.New("no valid meta page")

// fileMeta is the newest valid meta page.
type fileMeta struct {
	pageSize                     int64
	root, freelist, pages, newer uint64
	damaged                      bool // the other meta page is not valid
}

// checker reads a data file without mapping it.
type checker struct {
	f    *os.File
	meta fileMeta
	seen []bool   // pages that are in use
	bufs [][]byte // by depth
	// depth is the number of pages between the root and the one that is read.
	depth int
}

// checkFile reads the whole data file and reports in one line what is wrong with
// it: another program's file, a newer format, missing pages, or a page or row
// that is not as it was written. damaged reports that one of the two meta pages is not
// valid: if that was the newer one, the file is as it was before its last commit.
func checkFile(path string) (damaged bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("%s: %v; make it readable and writable for the user that runs weir", path, Cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("%s: %v", path, Cause(err))
	}
	c := &checker{f: f}
	c.meta, err = readMeta(f, info.Size())
	if errors.Is(err, errNoMeta) {
		return false, fmt.Errorf("%s: it is not a data file of weir, or its start is damaged; restore it from a backup, or move it away to start without data", path)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %v", path, Cause(err))
	}
	if want := c.meta.pageSize * int64(c.meta.pages); c.meta.pages > maxPages || info.Size() < want {
		return false, fmt.Errorf("%s: the file is truncated (%d of %d bytes); restore it from a backup", path, info.Size(),
			want)
	}
	version, err := c.format()
	switch {
	case err != nil:
		return false, corrupt(path, err.Error())
	case version == "":
		return false, fmt.Errorf("%s: it is not a data file of weir; move it away, or choose another directory with --data",
			path)
	case version != strconv.Itoa(format):
		return false, fmt.Errorf("%s: it has format %.20q and this version of weir reads %d; install the version that wrote it", path, version, format)
	}
	if err := c.all(); err != nil {
		return false, corrupt(path, err.Error())
	}
	return c.meta.damaged, nil
}

// readMeta returns the newest valid meta page. The second one stands one page
// after the start, whose size only a valid page says.
func readMeta(f io.ReaderAt, size int64) (newest fileMeta, err error) {
	err = errNoMeta
	read := func(at int64) (ok bool) {
		var b [pageHeader + metaSize]byte
		if at+int64(len(b)) > size {
			return false
		}
		if _, readErr := f.ReadAt(b[:], at); readErr != nil {
			err = readErr
			return false
		}
		m := b[pageHeader:]
		sum := fnv.New64a()
		sum.Write(m[:metaSize-8])
		pageSize := int64(u32(m[8:]))
		if u32(m) != metaMagic || u32(m[4:]) != metaVersion || u64(m[56:]) != sum.Sum64() ||
			pageSize < 512 || pageSize > maxPageSize || at != 0 && at != pageSize {
			return false
		}
		if tx := u64(m[48:]); errors.Is(err, errNoMeta) || tx > newest.newer {
			newest, err = fileMeta{pageSize: pageSize, root: u64(m[16:]), freelist: u64(m[32:]), pages: u64(m[40:]),
				newer: tx}, nil
		}
		return true
	}
	if read(0) {
		newest.damaged = !read(newest.pageSize)
		return newest, err
	}
	for at := int64(512); at <= maxPageSize && !read(at); at <<= 1 {
	}
	newest.damaged = true
	return newest, err
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// format returns the text of the row with the format, or "" without one.
func (c *checker) format() (version string, err error) {
	c.seen = make([]bool, c.meta.pages)
	err = c.tree(c.meta.root, nil, nil, func(key, value []byte, bucket bool) error {
		if !bucket || string(key) != infoBucket {
			return nil
		}
		return c.bucket(value, func(key, value []byte, bucket bool) error {
			if string(key) == formatKey && !bucket && len(value) > sumSize {
				version = string(value[sumSize:])
			}
			return nil
		})
	})
	return version, err
}

// all checks every page and every row.
func (c *checker) all() error {
	c.seen = make([]bool, c.meta.pages)
	c.seen[0], c.seen[1] = true, true
	var names []string
	var row func(key, value []byte, bucket bool) error
	row = func(key, value []byte, bucket bool) error {
		if !bucket {
			if len(names) == 0 {
				return fmt.Errorf("row %q outside a bucket", key)
			}
			_, err := openRow(names[len(names)-1], string(key), value)
			return err
		}
		names = append(names, string(key))
		err := c.bucket(value, row)
		names = names[:len(names)-1]
		return err
	}
	if err := c.tree(c.meta.root, nil, nil, row); err != nil {
		return err
	}
	if c.meta.freelist != noFreelist {
		if err := c.free(); err != nil {
			return err
		}
		for id, seen := range c.seen {
			if !seen {
				return fmt.Errorf("page %d is neither used nor free", id)
			}
		}
	}
	return nil
}

// page reads a page with its overflow into the buffer of its depth and marks it
// as in use.
func (c *checker) page(id uint64) ([]byte, error) {
	if id < 2 || id >= c.meta.pages {
		return nil, fmt.Errorf("page %d does not exist", id)
	}
	if c.depth >= maxPageDepth {
		return nil, fmt.Errorf("page %d is too deep", id)
	}
	for len(c.bufs) <= c.depth {
		c.bufs = append(c.bufs, make([]byte, c.meta.pageSize))
	}
	b := c.bufs[c.depth][:c.meta.pageSize]
	at := int64(id) * c.meta.pageSize
	if _, err := c.f.ReadAt(b, at); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, Cause(err))
	}
	more := uint64(u32(b[12:]))
	if u64(b) != id || id+more >= c.meta.pages {
		return nil, fmt.Errorf("page %d has a wrong header", id)
	}
	for p := id; p <= id+more; p++ {
		if c.seen[p] {
			return nil, fmt.Errorf("page %d is used twice", p)
		}
		c.seen[p] = true
	}
	if more > 0 {
		size := c.meta.pageSize * int64(more+1)
		if int64(cap(b)) < size {
			b = append(make([]byte, 0, size), b...)
		}
		b = b[:size]
		c.bufs[c.depth] = b
		if _, err := c.f.ReadAt(b[c.meta.pageSize:], at+c.meta.pageSize); err != nil {
			return nil, fmt.Errorf("page %d: %w", id, Cause(err))
		}
	}
	return b, nil
}

// tree walks the pages of one bucket. Its keys are at least from and less than
// to; nil means no bound.
func (c *checker) tree(id uint64, from, to []byte, row func(key, value []byte, bucket bool) error) error {
	b, err := c.page(id)
	if err != nil {
		return err
	}
	c.depth++
	defer func() { c.depth-- }()
	if err := c.elements(b, from, to, row); err != nil {
		var known *pageError
		if errors.As(err, &known) {
			return err
		}
		return &pageError{id, err}
	}
	return nil
}

// pageError says in which page an error is.
type pageError struct {
	id  uint64
	err error
}

func (e *pageError) Error() string { return fmt.Sprintf("page %d: %v", e.id, e.err) }
func (e *pageError) Unwrap() error { return e.err }

var errElement = errors.New("wrong position of an element")

// elements walks the elements of a branch or a leaf.
func (c *checker) elements(b []byte, from, to []byte, row func(key, value []byte, bucket bool) error) error {
	flags, count := u16(b[8:]), int(u16(b[10:]))
	next := pageHeader + count*elementSize // where the data of the next element begins
	if flags != branchPage && flags != leafPage || next > len(b) || flags == branchPage && count == 0 {
		return errors.New("wrong header")
	}
	if count == 0 && len(bytes.Trim(b[pageHeader:], "\x00")) > 0 {
		return errors.New("elements that are not counted")
	}
	// cut returns n bytes of the data in order.
	cut := func(n uint32) ([]byte, bool) {
		if int64(n) > int64(len(b)-next) {
			return nil, false
		}
		part := b[next : next+int(n)]
		next += int(n)
		return part, true
	}
	last := from
	for i := range count {
		at := pageHeader + i*elementSize
		e := b[at : at+elementSize]
		position, size := u32(e), u32(e[4:])
		if flags == leafPage {
			position, size = u32(e[4:]), u32(e[8:])
		}
		begin := next
		key, ok := cut(size)
		if !ok || at+int(position) != begin {
			return errElement
		}
		if order := bytes.Compare(key, last); last != nil && (order < 0 || order == 0 && i > 0) || to != nil &&
			bytes.Compare(key, to) >= 0 {
			return errors.New("keys out of order")
		}
		last = key
		if flags == leafPage {
			value, ok := cut(u32(e[12:]))
			if !ok || u32(e)&^bucketLeaf != 0 {
				return errElement
			}
			if err := row(key, value, u32(e)&bucketLeaf != 0); err != nil {
				return err
			}
			continue
		}
		bound := to
		if i+1 < count {
			// The next element's key, which stands after this one.
			n := u32(b[at+elementSize+4:])
			if int64(n) > int64(len(b)-next) {
				return errElement
			}
			bound = b[next : next+int(n)]
		}
		if err := c.tree(u64(e[8:]), key, bound, row); err != nil {
			return err
		}
	}
	return nil
}

// bucket walks a bucket from its value in a leaf of another.
func (c *checker) bucket(value []byte, row func(key, value []byte, bucket bool) error) error {
	if len(value) < bucketHeader {
		return errors.New("wrong size of a bucket")
	}
	if root := u64(value); root != 0 {
		return c.tree(root, nil, nil, row)
	}
	page := value[bucketHeader:]
	if len(page) < pageHeader || u16(page[8:]) != leafPage {
		return errors.New("wrong page in a bucket")
	}
	return c.elements(page, nil, nil, row)
}

// free marks the pages of the list of free pages.
func (c *checker) free() error {
	b, err := c.page(c.meta.freelist)
	if err != nil {
		return err
	}
	ids, count := b[pageHeader:], uint64(u16(b[10:]))
	if count == manyFree {
		count, ids = u64(ids), ids[8:]
	}
	if u16(b[8:]) != freelistPage || count > uint64(len(ids)/8) {
		return fmt.Errorf("page %d: wrong list of free pages", c.meta.freelist)
	}
	for i := range count {
		id := u64(ids[i*8:])
		if id < 2 || id >= c.meta.pages || c.seen[id] {
			return fmt.Errorf("page %d: free page %d is in use", c.meta.freelist, id)
		}
		c.seen[id] = true
	}
	return nil
}
