package plan

import (
	"reflect"
	"testing"
)

func TestWhatOnlyTheSchemaRejectsIsReportedAtItsPlace(t *testing.T) {
	c := &collector{file: "plan.yaml"}
	root := c.parse([]byte("steps:\n  - id: a\n    with: {x: 1}\n"))
	k := &checker{collector: c}
	k.overrule(root, []rejected{
		{path: []string{"steps", "0", "with", "x"}, keyword: "type"},
		{path: []string{"steps", "0", "with", "x"}, keyword: "anyOf"},
		{path: []string{"steps", "0", "gone"}, keyword: "required"},
	})
	var got []string
	for _, d := range c.sorted() {
		got = append(got, d.Error())
	}
	want := []string{
		"plan.yaml:2:5: the schema does not allow this value (required)",
		"plan.yaml:3:15: the schema does not allow this value (type)",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestAMistakeInTheLanguageIsNamed(t *testing.T) {
	type badDefault struct {
		N int `json:"n" default:"many"`
	}
	type noName struct{ N int }
	type noType struct {
		C chan int `json:"c"`
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[badDefault](), reflect.TypeFor[noName](), reflect.TypeFor[noType](), nil,
	} {
		lang := Language{Steps: []StepType{{Name: "x", Inputs: typ, Outputs: reflect.TypeFor[struct{}]()}}}
		if _, err := Schema(lang); err == nil {
			t.Errorf("%v: no error", typ)
		}
		_, err := Load("p", lang, Options{ReadFile: func(string) ([]byte, error) { return nil, nil }})
		if err == nil || Diagnostics(err) != nil {
			t.Errorf("%v: Load says %v: a mistake of the program is no diagnostic of the plan", typ, err)
		}
	}
}

func TestTheNearestNameIsATypoAway(t *testing.T) {
	names := []string{"rootPath", "bucket", "nodeSeeds", "id"}
	for name, want := range map[string]string{
		"rootpath":   "rootPath",
		"rootPaht":   "rootPath",
		"bukcet":     "bucket",
		"bucketName": "bucket",
		"seeds":      "",
		"ib":         "id",
		"namespace":  "",
		"":           "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestTemplatesAreTakenApart(t *testing.T) {
	for _, test := range []struct {
		text string
		want []rawPart
		open int
	}{
		{"plain", []rawPart{{text: "plain"}}, -1},
		{"${a}", []rawPart{{"a", true, 2}}, -1},
		{"x${a}y${b}", []rawPart{{"x", false, 0}, {"a", true, 3}, {"y", false, 5}, {"b", true, 8}}, -1},
		{"$${a} $5", []rawPart{{text: "${a} $5"}}, -1},
		{"${{'a': 1}['a']}", []rawPart{{"{'a': 1}['a']", true, 2}}, -1},
		{`${"}"}`, []rawPart{{`"}"`, true, 2}}, -1},
		{`${'it\'s }'}`, []rawPart{{`'it\'s }'`, true, 2}}, -1},
		{`${'''a'}'''}`, []rawPart{{`'''a'}'''`, true, 2}}, -1},
		{`${r'\'}`, []rawPart{{`r'\'`, true, 2}}, -1},
		{"${a", nil, 0},
		{"ü${'}", nil, 1},
		{"${", nil, 0},
		{"${}", []rawPart{{"", true, 2}}, -1},
	} {
		got, open := splitTemplate(test.text)
		if open != test.open || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %v, %d; want %v, %d", test.text, got, open, test.want, test.open)
		}
	}
}

func TestThePlaceOfACharacterInsideAScalarIsFound(t *testing.T) {
	for _, test := range []struct {
		name, text string
		index      int
		want       Position
	}{
		{"plain", "k: abc\n", 2, Position{1, 6}},
		{"double quotes", "k: \"abc\"\n", 2, Position{1, 7}},
		{"an escape", "k: \"a\\tb\\u00e9c\"\n", 4, Position{1, 15}},
		{"single quotes", "k: 'a''bc'\n", 3, Position{1, 9}},
		{"folded plain", "k: a\n   b c\n", 2, Position{2, 4}},
		{"folded quotes", "k: \"a\n  b c\"\n", 4, Position{2, 5}},
		{"a block", "k: |\n  a\n   b\n", 3, Position{3, 4}},
		{"a folded block", "k: >-\n  a\n  bc\n", 3, Position{3, 4}},
		{"an anchor", "k: &x abc\n", 1, Position{1, 8}},
		{"a tag", "k: !!str abc\n", 1, Position{1, 11}},
		{"characters", "k: üäb\n", 2, Position{1, 6}},
		{"beyond the end", "k: abc\n", 9, Position{1, 7}},
		{"a line that is continued", "k: \"a\\\n  b\"\n", 1, Position{2, 3}},
	} {
		c := &collector{}
		n := c.parse([]byte(test.text)).get("k")
		if got := newSource([]byte(test.text)).at(n, test.index); got != test.want {
			t.Errorf("%s: character %d of %q: got %v, want %v", test.name, test.index, n.text, got, test.want)
		}
	}
}
