package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// document parses the one YAML document of data. It returns nil where data
// holds none, comments and its own markers aside. Nothing is decoded: an alias
// stays a node of its own, so that no input grows.
func (s source) document(data []byte) (*yaml.Node, error) {
	if err := s.bounded(data); err != nil {
		return nil, err
	}
	documents, err := nodes(data)
	if err != nil {
		return nil, s.syntax(data, err)
	}
	switch len(documents) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, s.refuse(documents[1].Line, "keep one document in the file", "a second document starts here")
	}
	top := documents[0].Content[0]
	if isNull(top) && top.Value == "" {
		return nil, nil
	}
	return top, nil
}

// bounded refuses what no parser needs to see.
func (s source) bounded(data []byte) error {
	if len(data) > MaxFile {
		return s.refuse(0, "shorten the file", "the file is larger than %d bytes", MaxFile)
	}
	if !utf8.Valid(data) {
		return s.refuse(lineAt(data, invalidByte(data)), "save the file as UTF-8", "the text is not UTF-8")
	}
	return nil
}

func invalidByte(data []byte) int {
	for i := 0; ; {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// lineAt returns the number of the line that holds the byte at offset.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

// nodes returns the documents of data, at most two: a second one is an error
// already. The parser's own panics on malformed input become errors; it
// converts only those that it raises itself.
func nodes(data []byte) (documents []*yaml.Node, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			documents, err = nil, fmt.Errorf("the parser gave up: %v", cause)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for len(documents) < 2 {
		node := new(yaml.Node)
		if err := decoder.Decode(node); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, err
		}
		documents = append(documents, node)
	}
	return documents, nil
}

// searchable is the size up to which a syntax error's line is searched for; a
// search parses the text some fifteen times.
const searchable = 64 << 10

// syntax words a parser's error. The parser names the line where the broken
// construct began, one line less, or none, depending on the layer that
// noticed; so the line is found as the first one up to which the text already
// breaks in the same way.
func (s source) syntax(data []byte, broken error) error {
	parts := regexp.MustCompile(`(?s)^(?:yaml: )?(?:line (\d+): )?(.*)$`).FindStringSubmatch(broken.Error())
	line, _ := strconv.Atoi(parts[1])
	if len(data) <= searchable {
		ends := lineEnds(data)
		line = 1 + sort.Search(len(ends)-1, func(i int) bool {
			_, err := nodes(data[:ends[i]])
			return err != nil && err.Error() == broken.Error()
		})
	}
	if strings.HasPrefix(parts[2], "unknown anchor") {
		return s.alias(line)
	}
	return s.refuse(line, "", "invalid YAML: %s", parts[2])
}

// lineEnds returns the offset behind each line of data.
func lineEnds(data []byte) []int {
	var ends []int
	for i, b := range data {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(ends) == 0 || ends[len(ends)-1] < len(data) {
		ends = append(ends, len(data))
	}
	return ends
}

func (s source) alias(line int) error {
	return s.refuse(line, "write the value out", "aliases are not allowed")
}

// jsonDocument parses JSON into the same nodes, so that one reader serves
// both spellings.
func (s source) jsonDocument(data []byte) (*yaml.Node, error) {
	if err := s.bounded(data); err != nil {
		return nil, err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		line := 0
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			line = lineAt(data, int(syntax.Offset)-1)
		}
		return nil, s.refuse(line, "", "invalid JSON: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	reader := jsonReader{decoder: decoder, data: data, line: 1}
	return reader.value()
}

// jsonReader turns JSON that is known to be valid into nodes with lines.
type jsonReader struct {
	decoder *json.Decoder
	data    []byte
	offset  int
	line    int
}

func (r *jsonReader) value() (*yaml.Node, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	// A token never spans lines, so its end is on its line.
	end := int(r.decoder.InputOffset())
	r.line += bytes.Count(r.data[r.offset:end], []byte("\n"))
	r.offset = end
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line}
	switch token := token.(type) {
	case json.Delim:
		return node, r.children(node, token)
	case string:
		node.Tag, node.Value = "!!str", token
	case nil:
		node.Tag = "!!null"
	default:
		node.Value = fmt.Sprint(token)
	}
	return node, nil
}

// children reads the rest of an array or an object, closing bracket included.
func (r *jsonReader) children(node *yaml.Node, open json.Delim) error {
	node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		node.Kind, node.Tag = yaml.MappingNode, "!!map"
	}
	for r.decoder.More() {
		child, err := r.value()
		if err != nil {
			return err
		}
		node.Content = append(node.Content, child)
	}
	_, err := r.decoder.Token()
	return err
}

func isMapping(n *yaml.Node) bool { return n.Kind == yaml.MappingNode && n.ShortTag() == "!!map" }

func isSequence(n *yaml.Node) bool { return n.Kind == yaml.SequenceNode && n.ShortTag() == "!!seq" }

func isString(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" }

// isNull reports whether n is one of YAML's spellings of nothing; a value that
// is merely tagged so is none.
func isNull(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!null" {
		return false
	}
	switch n.Value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// pairs calls visit for each key and value of a mapping. It refuses keys that
// come twice, that stand elsewhere, or that would merge another mapping in.
func (s source) pairs(mapping *yaml.Node, visit func(key, value *yaml.Node) error) error {
	seen := make(map[string]bool, len(mapping.Content)/2)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		switch {
		case key.Kind == yaml.AliasNode:
			return s.alias(key.Line)
		case key.ShortTag() == "!!merge":
			return s.refuse(key.Line, "write the keys out", "merging a mapping in is not allowed")
		case key.Kind == yaml.ScalarNode && seen[key.Value]:
			return s.refuse(key.Line, "keep one of them", "the key %s comes twice", quote(key.Value))
		}
		seen[key.Value] = true
		if err := visit(key, value); err != nil {
			return err
		}
	}
	return nil
}
