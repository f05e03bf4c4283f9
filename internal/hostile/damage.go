package hostile

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"
)

// part is a step of a damaged answer. Exactly one of the first five fields is set.
type part struct {
	raw   []byte
	pause time.Duration
	hang  bool // until the client closes the connection
	close bool
	flood func(to []byte, i int) []byte // appends the i-th message

	name  string        // of the damage, and the question
	most  int           // bytes of the flood; 0 is without end
	times int           // of the flood; 0 is without end
	every time.Duration // between the messages of a flood
}

// arriving returns the messages of a script that arrive whole, without its floods.
func arriving(script []part) (messages []message) {
	var stream []byte
	for _, p := range script {
		if p.hang || p.close || p.flood != nil && p.times == 0 && p.most == 0 {
			break
		}
		stream = append(stream, p.raw...)
	}
	return parse(stream)
}

// parse returns the whole messages of a stream.
func parse(stream []byte) (messages []message) {
	for {
		m, rest, whole := next(stream)
		if !whole {
			return messages
		}
		messages, stream = append(messages, m), rest
	}
}

// damage makes a damaged answer of a recorded one.
type damage struct {
	name string
	make func(random *rand.Rand, answer []message, all *Recording) []part
}

// choose returns a damage. Floods cost the most time, so they are seldom.
func choose(random *rand.Rand, answer []message, all *Recording) (name string, script []part) {
	for {
		d := damages[random.IntN(len(damages))]
		script = d.make(random, answer, all)
		flood := slices.ContainsFunc(script, func(p part) bool { return p.flood != nil && p.every == 0 })
		if !flood || random.IntN(8) == 0 {
			return d.name, script
		}
	}
}

// damages are all that the server does.
var damages = []damage{
	{"ends in the middle of a message", func(random *rand.Rand, answer []message, _ *Recording) []part {
		raw := encode(nil, answer...)
		return []part{{raw: raw[:random.IntN(len(raw))]}, {close: true}}
	}},
	{"stops in the middle of a message", func(random *rand.Rand, answer []message, _ *Recording) []part {
		raw := encode(nil, answer...)
		return []part{{raw: raw[:random.IntN(len(raw))]}, {hang: true}}
	}},
	{"comes byte by byte", func(random *rand.Rand, answer []message, _ *Recording) []part {
		raw := encode(nil, answer...)
		every := []time.Duration{time.Microsecond, 10 * time.Millisecond, time.Second}[random.IntN(3)]
		script := make([]part, len(raw))
		for i := range raw {
			script[i] = part{raw: raw[i : i+1], pause: every}
		}
		return script
	}},
	{"is late", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return []part{{pause: time.Duration(random.Int64N(int64(20 * time.Second)))}, {raw: encode(nil, answer...)}}
	}},
	{"announces a huge message", func(random *rand.Rand, answer []message, _ *Recording) []part {
		length := []uint32{1<<30 - 1, 1 << 30, 1<<31 - 1, 1<<32 - 1, 100 << 20, 80 << 20}[random.IntN(6)]
		head := binary.BigEndian.AppendUint32([]byte{kindOf(random, answer)}, length)
		if random.IntN(2) == 0 {
			return []part{{raw: encode(nil, answer[:random.IntN(len(answer))]...)}, {raw: head}, {hang: true}}
		}
		return []part{{raw: head}, {flood: func(to []byte, _ int) []byte { return append(to, "xxxxxxxxxxxxxxxx"...) }}}
	}},
	{"announces a message of no length", func(random *rand.Rand, answer []message, _ *Recording) []part {
		head := binary.BigEndian.AppendUint32([]byte{kindOf(random, answer)}, uint32(random.IntN(4)))
		return []part{{raw: head}, {raw: encode(nil, answer...)}}
	}},
	{"has a value of 100 MB", func(random *rand.Rand, answer []message, _ *Recording) []part {
		at := random.IntN(len(answer))
		head := binary.BigEndian.AppendUint32([]byte{'D'}, 100<<20+10)
		head = binary.BigEndian.AppendUint32(append(head, 0, 1), 100<<20)
		block := make([]byte, 1<<14)
		return []part{
			{raw: append(encode(nil, answer[:at]...), head...)},
			{flood: func(to []byte, _ int) []byte { return append(to, block...) }, times: 100 << 20 >> 14},
			{raw: encode(nil, answer[at:]...)},
		}
	}},
	{"has flipped bits", func(random *rand.Rand, answer []message, _ *Recording) []part {
		raw := encode(nil, answer...)
		for range 1 + random.IntN(8) {
			raw[random.IntN(len(raw))] ^= 1 << random.IntN(8)
		}
		return []part{{raw: raw}}
	}},
	{"has other bytes in a message", func(random *rand.Rand, answer []message, _ *Recording) []part {
		changed := append([]message{}, answer...)
		at := random.IntN(len(changed))
		changed[at].body = bytesOf(random, []int{0, 1, 2, 6, len(changed[at].body), 300}[random.IntN(6)])
		return []part{{raw: encode(nil, changed...)}}
	}},
	{"has messages of another type", func(random *rand.Rand, answer []message, _ *Recording) []part {
		changed := append([]message{}, answer...)
		changed[random.IntN(len(changed))].kind = byte(random.IntN(256))
		return []part{{raw: encode(nil, changed...)}}
	}},
	{"has other values", valuesDamaged},
	{"has NULLs", func(_ *rand.Rand, answer []message, _ *Recording) []part {
		return changedRows(answer, func(values [][]byte) [][]byte { clear(values); return values })
	}},
	{"has a NULL", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return changedRows(answer, func(values [][]byte) [][]byte {
			if len(values) > 0 {
				values[random.IntN(len(values))] = nil
			}
			return values
		})
	}},
	{"lacks columns", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return changedRows(answer, func(values [][]byte) [][]byte { return values[:random.IntN(len(values)+1)] })
	}},
	{"lacks columns and says so", func(random *rand.Rand, answer []message, _ *Recording) []part {
		n := random.IntN(4)
		changed := append([]message{}, answer...)
		for i, m := range changed {
			if m.kind == 'T' {
				changed[i].body = described(n, uint32(random.IntN(3000)))
			}
		}
		return changedRows(changed, func(values [][]byte) [][]byte { return values[:min(n, len(values))] })
	}},
	{"has more columns", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return changedRows(answer, func(values [][]byte) [][]byte {
			return append(values, make([][]byte, 1+random.IntN(1000))...)
		})
	}},
	{"has columns of other types", func(random *rand.Rand, answer []message, _ *Recording) []part {
		changed := append([]message{}, answer...)
		for i, m := range changed {
			if m.kind == 'T' && len(m.body) > 2 {
				changed[i].body = described(int(binary.BigEndian.Uint16(m.body)), types[random.IntN(len(types))])
			}
		}
		return []part{{raw: encode(nil, changed...)}}
	}},
	{"never ends", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return endlessly(random, answer, rowOf(random, answer), 0)
	}},
	{"never ends, slowly", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return endlessly(random, answer, rowOf(random, answer), time.Second)
	}},
	{"repeats a message without end", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return endlessly(random, answer, answer[random.IntN(len(answer))], 0)
	}},
	{"comes after a flood", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return []part{{flood: noise(random), times: 1 + random.IntN(2000)}, {raw: encode(nil, answer...)}}
	}},
	{"comes after a flood without end", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return []part{{flood: noise(random)}, {raw: encode(nil, answer...)}}
	}},
	{"has a flood behind it", func(random *rand.Rand, answer []message, _ *Recording) []part {
		return []part{{raw: encode(nil, answer...)}, {flood: noise(random), most: 8 << 20}}
	}},
	{"lacks a message", func(random *rand.Rand, answer []message, _ *Recording) []part {
		at := random.IntN(len(answer))
		return []part{{raw: encode(encode(nil, answer[:at]...), answer[at+1:]...)}}
	}},
	{"has a message twice", func(random *rand.Rand, answer []message, _ *Recording) []part {
		at := random.IntN(len(answer))
		return []part{{raw: encode(encode(nil, answer[:at+1]...), answer[at:]...)}}
	}},
	{"is out of order", func(random *rand.Rand, answer []message, _ *Recording) []part {
		changed := append([]message{}, answer...)
		random.Shuffle(len(changed), func(i, j int) { changed[i], changed[j] = changed[j], changed[i] })
		return []part{{raw: encode(nil, changed...)}}
	}},
	{"has a foreign message in it", func(random *rand.Rand, answer []message, _ *Recording) []part {
		at := random.IntN(len(answer) + 1)
		raw := encode(nil, answer[:at]...)
		for range 1 + random.IntN(3) {
			raw = encode(raw, foreign[random.IntN(len(foreign))])
		}
		return []part{{raw: encode(raw, answer[at:]...)}}
	}},
	{"is that to another question", func(random *rand.Rand, _ []message, all *Recording) []part {
		other := all.conversations[random.IntN(len(all.conversations))].exchanges
		if len(other) == 0 {
			return []part{{close: true}}
		}
		return []part{{raw: encode(nil, other[random.IntN(len(other))].answer...)}}
	}},
	{"ends in another state", func(random *rand.Rand, answer []message, _ *Recording) []part {
		raw := encode(nil, answer[:len(answer)-1]...)
		return []part{{raw: encode(raw, ready([]byte{'T', 'E', 0, 255}[random.IntN(4)]))}}
	}},
	{"is missing", func(*rand.Rand, []message, *Recording) []part { return []part{{hang: true}} }},
}

// types are those whose binary forms have lengths in them.
var types = []uint32{16, 17, 20, 21, 23, 25, 114, 600, 701, 869, 1007, 1009, 1016, 1043, 1082, 1114, 1184, 1186, 1700, 2249, 2950, 3614, 3802, 3904, 4451, 1 << 31}

// foreign are messages that belong elsewhere.
var foreign = []message{
	{'R', []byte{0, 0, 0, 0}}, {'R', []byte{0, 0, 0, 3}}, {'R', []byte{0, 0, 0, 10, 0}}, {'R', []byte{0, 0, 0, 12, 'v', '='}},
	{'v', []byte{0, 0, 0, 0, 127, 255, 255, 255}}, {'K', []byte{0, 0, 0, 1, 0, 0, 0, 1}},
	{'G', []byte{0, 0, 0}}, {'H', []byte{0, 0, 1, 0, 0}}, {'W', []byte{0, 0, 0}}, {'d', []byte("data")}, {'c', nil},
	{'1', nil}, {'2', nil}, {'3', nil}, {'n', nil}, {'s', nil}, {'I', nil}, {'t', []byte{255, 255}}, {'T', []byte{255, 255}},
	{'D', []byte{0, 1, 255, 255, 255, 255}}, {'D', []byte{255, 255}}, {'C', []byte("SELECT 18446744073709551615\x00")},
	{'S', []byte("client_encoding\x00LATIN1\x00")}, {'S', []byte("standard_conforming_strings\x00off\x00")}, {'V', []byte{255, 255, 255, 254}},
	report('E', "ERROR", "40001", "again"), report('E', "FATAL", "57P01", "ended"), report('E', "PANIC", "XX000", "panic"), report('E', "", "", ""),
	report('N', "WARNING", "01000", "careful"), report('N', "FATAL", "57P01", "no error"), {'E', nil}, {'N', []byte{'S'}}, ready('I'), ready('T'),
	{'A', []byte("\x00\x00\x00\x01public_tenure_\x00roles\x00")}, {'A', []byte{0, 0, 0}},
}

var longNotification = message{'A', append(append([]byte("\x00\x00\x00\x01hostile_tenure_\x00"), bytes.Repeat([]byte("x"), 8000)...), 0)}

// noise returns a flood of what a server may send at any time.
func noise(random *rand.Rand) func([]byte, int) []byte {
	warning, notice := report('N', "WARNING", "01000", "a warning"), report('N', "NOTICE", "00000", "a notice")
	switch random.IntN(5) {
	case 0:
		return func(to []byte, _ int) []byte { return encode(to, warning) }
	case 1:
		return func(to []byte, _ int) []byte { return encode(to, notice) }
	case 2: // each of another name
		return func(to []byte, i int) []byte {
			return encode(to, message{'S', append(binary.BigEndian.AppendUint32([]byte("x"), uint32(i)|0x01010101), "\x00v\x00"...)})
		}
	case 3:
		return func(to []byte, i int) []byte {
			payload := binary.BigEndian.AppendUint32([]byte("\x00\x00\x00\x01c\x00"), uint32(i)|0x01010101)
			return encode(to, message{'A', append(payload, 0)})
		}
	default:
		return func(to []byte, _ int) []byte { return encode(to, longNotification) }
	}
}

func kindOf(random *rand.Rand, answer []message) byte { return answer[random.IntN(len(answer))].kind }

func bytesOf(random *rand.Rand, n int) []byte {
	made := make([]byte, n)
	for i := range made {
		made[i] = byte(random.Uint32())
	}
	return made
}

// rowOf returns a row of the answer, sometimes an empty one.
func rowOf(random *rand.Rand, answer []message) message {
	for _, m := range answer {
		if m.kind == 'D' && random.IntN(4) > 0 {
			return m
		}
	}
	return row(make([][]byte, random.IntN(3)))
}

// endlessly sends a message again and again before the end of an answer.
func endlessly(random *rand.Rand, answer []message, m message, every time.Duration) []part {
	at := random.IntN(len(answer))
	for i, other := range answer {
		if other.kind == 'D' {
			at = i
		}
	}
	raw := encode(nil, m)
	return []part{{raw: encode(nil, answer[:at]...)}, {flood: func(to []byte, _ int) []byte { return append(to, raw...) }, every: every}}
}

// changedRows changes the values of each row.
func changedRows(answer []message, change func([][]byte) [][]byte) []part {
	changed := append([]message{}, answer...)
	for i, m := range changed {
		if m.kind != 'D' {
			continue
		}
		if values, ok := columns(m.body); ok {
			changed[i] = row(change(values))
		}
	}
	return []part{{raw: encode(nil, changed...)}}
}

func valuesDamaged(random *rand.Rand, answer []message, _ *Recording) []part {
	return changedRows(answer, func(values [][]byte) [][]byte {
		if len(values) == 0 {
			return values
		}
		at := random.IntN(len(values))
		switch random.IntN(6) {
		case 0:
			values[at] = []byte{}
		case 1:
			values[at] = bytesOf(random, len(values[at]))
		case 2: // an array of no dimension
			values[at] = []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23}
		case 3: // an array of too many elements
			values[at] = []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 127, 255, 255, 255, 0, 0, 0, 1}
		case 4:
			values[at] = []byte{255, 255, 255, 255, 255, 255, 255, 255}[:1+random.IntN(8)]
		default:
			values[at] = bytesOf(random, 1<<16)
		}
		return values
	})
}

// described is the body of a description of n columns of one type.
func described(n int, oid uint32) []byte {
	body := binary.BigEndian.AppendUint16(nil, uint16(n))
	for range n {
		body = append(body, 'c', 0, 0, 0, 0, 0, 0, 0)
		body = binary.BigEndian.AppendUint32(body, oid)
		body = append(body, 255, 255, 255, 255, 255, 255, 0, 1)
	}
	return body
}
