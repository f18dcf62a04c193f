package main

import "encoding/binary"

// minGap is the shortest run of zeros that is left out: a shorter one costs
// less than the two lengths that tell of it.
const minGap = 3

// pack gives the module with its memory image as gaps and runs.
func pack(module []byte) ([]byte, error) {
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	data, types := find(sections, sectionData), find(sections, sectionType)
	functions, memory, code := find(sections, sectionFunction), find(sections, sectionMemory), find(sections, sectionCode)
	if data < 0 || types < 0 || functions < 0 || memory < 0 || code < 0 || find(sections, sectionStart) >= 0 {
		return nil, errFormat
	}
	mem, err := image(sections[data].body)
	if err != nil {
		return nil, err
	}
	if err := dropLines(mem); err != nil {
		return nil, err
	}
	lengths, runs := sparse(mem)
	base := (len(mem) + pageSize - 1) / pageSize * pageSize
	total := len(lengths) + len(runs)

	imported, err := importedFunctions(sections)
	if err != nil {
		return nil, err
	}
	var kind, index uint64
	sections[types].body, kind, err = appendType(sections[types].body)
	if err != nil {
		return nil, err
	}
	sections[functions].body, index, err = appendEntry(sections[functions].body, binary.AppendUvarint(nil, kind))
	if err != nil {
		return nil, err
	}
	body := unpacker(base, len(lengths), total)
	sections[code].body, _, err = appendEntry(sections[code].body, append(binary.AppendUvarint(nil, uint64(len(body))), body...))
	if err != nil {
		return nil, err
	}
	if sections[memory].body, err = atLeast(sections[memory].body, (base+total+pageSize-1)/pageSize); err != nil {
		return nil, err
	}
	segment := binary.AppendUvarint([]byte{1, 1}, uint64(total)) // one segment, passive
	sections[data].body = append(append(segment, lengths...), runs...)

	var out []section
	for _, s := range sections {
		if s.id == sectionDataCount {
			continue
		}
		if s.id == sectionCode {
			out = append(out, section{sectionDataCount, []byte{1}})
		}
		out = append(out, s)
		if s.id == 7 { // exports; the start function comes behind them
			out = append(out, section{sectionStart, binary.AppendUvarint(nil, imported+index)})
		}
	}
	return join(out), nil
}

// sparse tells an image as runs of bytes and, apart from them (so that gzip
// finds each kind among its like), as pairs of lengths: zeros, then bytes.
func sparse(mem []byte) (lengths, runs []byte) {
	for at := 0; at < len(mem); {
		start := at
		for start < len(mem) && mem[start] == 0 {
			start++
		}
		end := start
		for end < len(mem) {
			gap := end
			for gap < len(mem) && mem[gap] == 0 {
				gap++
			}
			if gap-end >= minGap || gap == len(mem) {
				break
			}
			for end = gap; end < len(mem) && mem[end] != 0; end++ {
			}
		}
		lengths = binary.AppendUvarint(lengths, uint64(start-at))
		lengths = binary.AppendUvarint(lengths, uint64(end-start))
		runs = append(runs, mem[start:end]...)
		at = end
	}
	return lengths, runs
}

// importedFunctions counts the functions whose numbers come before the
// module's own.
func importedFunctions(sections []section) (n uint64, err error) {
	i := find(sections, 2)
	if i < 0 {
		return 0, nil
	}
	r := reader{b: sections[i].body}
	for left := r.uint(); left > 0 && !r.bad; left-- {
		r.take(int(r.uint())) // module
		r.take(int(r.uint())) // name
		if r.byte() != 0 {    // the Go linker imports functions only
			return 0, errFormat
		}
		r.uint()
		n++
	}
	if r.bad {
		return 0, errFormat
	}
	return n, nil
}

// appendType adds the type of a function without parameters and results.
func appendType(types []byte) ([]byte, uint64, error) {
	return appendEntry(types, []byte{0x60, 0, 0})
}

// appendEntry adds an entry to a section that is a counted list, and tells its
// index there.
func appendEntry(list, entry []byte) ([]byte, uint64, error) {
	n, size := binary.Uvarint(list)
	if size <= 0 {
		return nil, 0, errFormat
	}
	out := binary.AppendUvarint(nil, n+1)
	out = append(out, list[size:]...)
	return append(out, entry...), n, nil
}

// atLeast raises a memory's first size to so many pages.
func atLeast(memory []byte, pages int) ([]byte, error) {
	r := reader{b: memory}
	if count, flags := r.uint(), r.byte(); count != 1 || flags != 0 {
		return nil, errFormat
	}
	now := r.uint()
	if r.bad || len(r.b) > 0 {
		return nil, errFormat
	}
	return binary.AppendUvarint([]byte{1, 0}, max(now, uint64(pages))), nil
}

// unpacker is the body of the start function. It copies the segment behind
// the image, lays out the runs, and leaves the place zeroed: the program takes
// it for its heap.
//
//	memory.init 0 (base, 0, total)
//	length = base; run = base + lengths; to = 0
//	do {
//	  to += uleb(length); n = uleb(length)
//	  memory.copy(to, run, n); to += n; run += n
//	} while length < base + lengths
//	memory.fill(base, 0, total); data.drop 0
func unpacker(base, lengths, total int) []byte {
	const length, run, to, n, shift, c = 0, 1, 2, 3, 4, 5 // locals
	a := assembler{}
	a.op(1, 6, 0x7f) // six locals, i32
	a.i32(base).i32(0).i32(total).op(0xfc, 8, 0, 0)
	a.i32(base).set(length)
	a.i32(base + lengths).set(run)
	a.op(0x03, 0x40) // loop
	a.uleb(length, n, shift, c)
	a.get(to).get(n).op(0x6a).set(to)
	a.uleb(length, n, shift, c)
	a.get(to).get(run).get(n).op(0xfc, 10, 0, 0)
	a.get(to).get(n).op(0x6a).set(to)
	a.get(run).get(n).op(0x6a).set(run)
	a.get(length).i32(base+lengths).op(0x49, 0x0d, 0) // i32.lt_u, br_if
	a.op(0x0b)
	a.i32(base).i32(0).i32(total).op(0xfc, 11, 0)
	a.op(0xfc, 9, 0)
	a.op(0x0b)
	return a.code
}

type assembler struct{ code []byte }

func (a *assembler) op(b ...byte) *assembler   { a.code = append(a.code, b...); return a }
func (a *assembler) get(local byte) *assembler { return a.op(0x20, local) }
func (a *assembler) set(local byte) *assembler { return a.op(0x21, local) }
func (a *assembler) i32(v int) *assembler {
	a.code = appendInt(append(a.code, 0x41), int64(v))
	return a
}

// uleb reads an unsigned LEB128 number at the address in from, which moves on.
func (a *assembler) uleb(from, into, shift, c byte) {
	a.i32(0).set(into)
	a.i32(0).set(shift)
	a.op(0x03, 0x40)                               // loop
	a.get(from).op(0x2d, 0, 0).set(c)              // i32.load8_u
	a.get(from).i32(1).op(0x6a).set(from)          // i32.add
	a.get(c).i32(127).op(0x71).get(shift).op(0x74) // i32.and, i32.shl
	a.get(into).op(0x72).set(into)                 // i32.or
	a.get(shift).i32(7).op(0x6a).set(shift)        //
	a.get(c).i32(128).op(0x71, 0x0d, 0)            // br_if
	a.op(0x0b)
}
