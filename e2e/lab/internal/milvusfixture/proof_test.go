package milvusfixture

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/milvus-io/milvus-proto/go-api/v2/msgpb"
	"github.com/milvus-io/milvus/pkg/v2/proto/datapb"
	"github.com/milvus-io/milvus/pkg/v2/proto/etcdpb"
	"github.com/milvus-io/milvus/pkg/v2/proto/streamingpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The product rewrites values without Milvus's messages, this module has them and
// must not import the product. They meet in one file: this test makes the values
// before, with everything that a message can hold; a test of the product rewrites
// them; and here what it wrote is judged. To make the file anew:
//
//	go test ./internal/milvusfixture -run Proof -update   (here)
//	go test ./internal/milvus -run Proof -update          (in the product)
//	go test -count=1 ./internal/milvusfixture             (here: a cached result does not see that file)
const proofFile = "../../../../internal/milvus/testdata/rewrites.jsonl"

var update = flag.Bool("update", false, "write the values before, without those after")

type proof struct {
	Kind   string `json:"kind"`
	Target string `json:"target"`
	Before string `json:"before"` // hex
	After  string `json:"after"`  // hex
}

var proofKinds = map[string]proto.Message{
	"collection":         &etcdpb.CollectionInfo{},
	"segment":            &datapb.SegmentInfo{},
	"channel checkpoint": &msgpb.MsgPosition{},
	"consume checkpoint": &streamingpb.WALCheckpoint{},
}

const proofsOfEach = 6

func TestProofThatRewritesAreWhatMilvusWouldHaveWritten(t *testing.T) {
	generated := generateProofs(t)
	if *update {
		writeProofs(t, generated)
		return
	}
	stored := readProofs(t)
	if len(stored) != len(generated) {
		t.Fatalf("%d proofs are stored, %d are made", len(stored), len(generated))
	}
	changed := 0
	for i, p := range stored {
		made := generated[i]
		if made.After = p.After; p != made {
			t.Fatalf("line %d: the value before is not the one made here", i+1)
		}
		if err := CheckMessage(proofKinds[p.Kind], unhex(t, p.Before), unhex(t, p.After), p.Target); err != nil {
			t.Errorf("line %d, %s to %s: %v", i+1, p.Kind, p.Target, err)
		}
		if p.Before != p.After {
			changed++
		}
	}
	if changed < len(stored)*3/4 {
		t.Errorf("only %d of %d values changed at all", changed, len(stored))
	}
}

func generateProofs(t *testing.T) []proof {
	random := rand.New(rand.NewPCG(2, 6))
	var proofs []proof
	for _, kind := range slices.Sorted(maps.Keys(proofKinds)) {
		for n := range proofsOfEach {
			for _, target := range []string{"woodpecker", "pulsar", "kafka", "rocksmq"} {
				m := proofKinds[kind].ProtoReflect().New()
				fill(random, m, 3)
				b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
				if err != nil {
					t.Fatal(err)
				}
				if n%3 == 2 { // fields that come twice are one field, or one message
					again := m.New()
					fill(random, again, 3)
					more, err := proto.MarshalOptions{Deterministic: true}.Marshal(again.Interface())
					if err != nil {
						t.Fatal(err)
					}
					b = append(b, more...)
				}
				if kind == "consume checkpoint" && n%2 == 0 { // a pending switch, which these messages do not know
					b = appendBytes(b, 6, varints(4, absent, 7))
				}
				proofs = append(proofs, proof{Kind: kind, Target: target, Before: hex.EncodeToString(b)})
			}
		}
	}
	return proofs
}

// fill gives a message a random value in about two of three fields, and unknown
// fields of every wire type.
func fill(random *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if random.IntN(3) == 0 || depth == 0 && field.Message() != nil {
			continue
		}
		switch {
		case field.IsMap():
			values := m.Mutable(field).Map()
			for range 1 + random.IntN(3) {
				key := scalar(random, field.MapKey()).MapKey()
				if value := field.MapValue(); value.Message() != nil {
					fill(random, values.Mutable(key).Message(), depth-1)
				} else {
					values.Set(key, scalar(random, value))
				}
			}
		case field.IsList():
			list := m.Mutable(field).List()
			for range 1 + random.IntN(2) {
				if field.Message() != nil {
					fill(random, list.AppendMutable().Message(), depth-1)
				} else {
					list.Append(scalar(random, field))
				}
			}
		case field.Message() != nil:
			fill(random, m.Mutable(field).Message(), depth-1)
		default:
			m.Set(field, scalar(random, field))
		}
	}
	m.SetUnknown(unknownFields(random))
}

func scalar(random *rand.Rand, field protoreflect.FieldDescriptor) protoreflect.Value {
	small, large := random.IntN(100), random.Uint64()
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(small%2 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(small % 8))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(large))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(large))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(large))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(large)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(small))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(small))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprintf("by-dev-rootcoord-dml_%d", small))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(protowire.AppendFixed64(nil, large)[:small%9])
	}
	panic("no value for a field of kind " + field.Kind().String())
}

func unknownFields(random *rand.Rand) []byte {
	var b []byte
	for number := protowire.Number(40); number < 44; number++ {
		switch random.IntN(8) {
		case 0:
			b = append(b, unknownField(number, random.Uint64())...)
		case 1:
			b = appendBytes(b, number, []byte("newer"))
		case 2:
			b = protowire.AppendFixed32(protowire.AppendTag(b, number, protowire.Fixed32Type), random.Uint32())
		case 3:
			b = protowire.AppendTag(b, number, protowire.StartGroupType)
			b = append(b, unknownField(1, 7)...)
			b = protowire.AppendTag(b, number, protowire.EndGroupType)
		}
	}
	return b
}

func writeProofs(t *testing.T, proofs []proof) {
	file, err := os.Create(proofFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := json.NewEncoder(file)
	for _, p := range proofs {
		if err := lines.Encode(p); err != nil {
			t.Fatal(err)
		}
	}
}

func readProofs(t *testing.T) []proof {
	file, err := os.Open(proofFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var proofs []proof
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<22)
	for scanner.Scan() {
		var p proof
		if err := json.Unmarshal(scanner.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		proofs = append(proofs, p)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return proofs
}

func unhex(t *testing.T, text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
