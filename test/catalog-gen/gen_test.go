package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadIDsKnowsTheFormsOfTypeFiles(t *testing.T) {
	f := files{"dist/index.d.ts": `type AModelId = 'b' | 'a' | (string & {});
type BModelId = 'c' |
  'd/e:1';
declare const tuple: readonly ["y", "x"];
declare const entries: {
  readonly 'k-1': {
    capabilities: {
      inner: true;
    };
  };
  'k-2': undefined;
  bare: undefined;
};
declare const other: {
  'no': true;
};
`}
	for name, want := range map[string]string{"AModelId": "a b", "BModelId": "c d/e:1", "tuple": "x y", "entries": "bare k-1 k-2"} {
		got, err := readIDs(f, name)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s = %v %v, want %s", name, got, err, want)
		}
	}
	// A declaration that a new version renamed must not go unnoticed.
	if got, err := readIDs(f, "Gone"); err == nil {
		t.Errorf("a missing declaration gave %v", got)
	}
}

func TestReadChatsTakesFactsOnly(t *testing.T) {
	f := files{"dist/providers/data/x.json": `{"api":{
		"1":{"type":"chat","id":"m","name":"M","baseUrl":"https://secret.example","reasoning":true,"input":["text","image"],"cost":{"input":0.1,"output":2,"cacheRead":0,"cacheWrite":3,"tiers":[{"inputTokensAbove":9,"input":0.2,"output":4,"cacheRead":0,"cacheWrite":6}]},"contextWindow":9,"maxTokens":8},
		"2":{"type":"chat","id":"unpriced","name":"unpriced","reasoning":false,"input":["text"],"cost":{"input":0,"output":0}},
		"3":{"type":"chat","id":"gift:free","input":["text"],"cost":{}},
		"4":{"type":"image","id":"draw","input":["text"],"output":["text","image"],"cost":{"input":1,"output":2}},
		"5":{"type":"classifier","id":"judge","input":["text"],"cost":{"input":1}}}}`}
	l := list{}
	if err := readChats(f, chatList{"x", "x"}, l); err != nil {
		t.Fatal(err)
	}
	index, text, n, err := render(map[string]list{"openai": l})
	want := "draw\ti\t\t\tt\tti\tI\t1/2\n" +
		"gift:free\tl\t\t\tt\tt\tTv\t0/0\n" +
		"m\tl\t9\t8\tti\tt\tTRV\t0.1/2//3 >9=0.2/4//6\t\tM\n" +
		"unpriced\tl\t\t\tt\tt\tTrv\n"
	if err != nil || n != 4 || string(text) != want || !strings.HasSuffix(string(index), fmt.Sprintf("{\"openai\", 0, %d},\n}\n", len(want))) {
		t.Errorf("%d %v\n%s\n%s\nwant\n%s", n, err, index, text, want)
	}
	if strings.Contains(string(text), "example") {
		t.Error("an address got through")
	}
}

func TestAliasWithoutPlaceIsAnError(t *testing.T) {
	if _, _, _, err := render(map[string]list{"unheard-of": {"a\tl": {id: "a", kind: "l"}}}); err == nil {
		t.Error("no error")
	}
}

func TestRetiredPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, id string
		want        bool
	}{{"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true}, {"a*", "b", false}} {
		if got := match(tt.pattern, tt.id); got != tt.want {
			t.Errorf("match(%q, %q) = %v", tt.pattern, tt.id, got)
		}
	}
}
