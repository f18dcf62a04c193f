package catalog

import (
	"strconv"
	"strings"
)

// Model is one model of a provider. A zero field is unknown.
type Model struct {
	ID         string // as the upstream wants it, without an alias
	Name       string // for people; "" where it is the id
	Kind       Kind
	Context    int // tokens
	MaxOutput  int // tokens
	Dimensions int // of an embedding, when none are asked for
	Input      Modality
	Output     Modality
	Caps       Caps
	Price      Price
	// Deprecated is the day on which the vendor ends the model, a blank and the id of its
	// successor; "-" for a deprecated model of which neither is known.
	Deprecated string
}

// Modality is a set of input or output types of a model.
type Modality uint8

// The modalities.
const (
	Text Modality = 1 << iota
	Images
	Audio
	Videos
	File
	Vectors
)

// modalities are their letters in models.txt and their names on the wire.
var modalities = []struct {
	letter byte
	name   string
}{{'t', "text"}, {'i', "image"}, {'a', "audio"}, {'v', "video"}, {'f', "file"}, {'e', "embedding"}}

// AppendJSON appends the names as an array.
func (m Modality) AppendJSON(b []byte) []byte {
	b = append(b, '[')
	for i := range modalities {
		if m&(1<<i) == 0 {
			continue
		}
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, modalities[i].name...)
		b = append(b, '"')
	}
	return append(b, ']')
}

// ModalityOf returns the modality with a name as catalogues write it, in any case, or 0.
func ModalityOf(name string) Modality {
	switch strings.ToLower(name) {
	case "text":
		return Text
	case "image", "images":
		return Images
	case "audio", "speech":
		return Audio
	case "video":
		return Videos
	case "file", "pdf", "document":
		return File
	case "embedding", "embeddings":
		return Vectors
	}
	return 0
}

// Cap is one thing a model can do.
type Cap uint16

// The capabilities, in the order they are listed.
const (
	Tools Cap = 1 << iota
	Reasoning
	Vision
	PDF
	AudioInput
	VideoInput
	ImageOutput
	AudioOutput
	Search
	StructuredOutputs
)

// capabilities are their letters in models.txt and their names on the wire.
var capabilities = []struct {
	letter byte
	name   string
}{
	{'T', "tools"}, {'R', "reasoning"}, {'V', "vision"}, {'P', "pdf"}, {'A', "audio_input"}, {'D', "video_input"},
	{'I', "image_output"}, {'O', "audio_output"}, {'S', "search"}, {'J', "structured_outputs"},
}

// CapOf returns the capability with a name on the wire, or 0.
func CapOf(name string) Cap {
	for i := range capabilities {
		if capabilities[i].name == name {
			return 1 << i
		}
	}
	return 0
}

// Caps states for each capability whether the model has it, lacks it, or whether that is
// unknown. In the zero value all are unknown.
type Caps struct{ known, has Cap }

// Set notes that the model has the capability or has it not.
func (c *Caps) Set(x Cap, has bool) {
	c.known |= x
	c.has &^= x
	if has {
		c.has |= x
	}
}

// Get returns whether the model has the capability, and whether that is known.
func (c Caps) Get(x Cap) (has, known bool) { return c.has&x != 0, c.known&x != 0 }

// Known reports whether at least one capability is known.
func (c Caps) Known() bool { return c.known != 0 }

// Over fills what c does not know from d.
func (c Caps) Over(d Caps) Caps {
	fill := d.known &^ c.known
	return Caps{c.known | fill, c.has | d.has&fill}
}

// Shared is what is known of a group: that all have a capability, or that one
// of them lacks it.
func (c Caps) Shared(d Caps) Caps {
	no := c.known&^c.has | d.known&^d.has
	yes := c.has & d.has
	return Caps{no | yes, yes}
}

// AppendJSON appends the known capabilities as an object of booleans.
func (c Caps) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	comma := false
	for i := range capabilities {
		has, known := c.Get(1 << i)
		if !known {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = append(b, '"')
		b = append(b, capabilities[i].name...)
		b = append(b, `":`...)
		b = strconv.AppendBool(b, has)
	}
	return append(b, '}')
}
