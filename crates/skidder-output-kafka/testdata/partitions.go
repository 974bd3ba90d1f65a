// Prints testdata/partitions.tsv: which partition Filebeat's hash partitioner gives to values.
//
//	go run partitions.go >partitions.tsv
//
// What is hashed and how follows the documentation and behaviour of libbeat's
// outputs/kafka/partition.go: FNV-1a of 32 bits over the key, or over the fields in their order (text as
// it is, integers as 8 bytes little-endian, booleans as one byte, floating-point numbers as the
// shortest text of 32 bits), the sign bit cleared, modulo the number of partitions.
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
)

func main() {
	lists := [][]any{
		{""}, {"a"}, {"foobar"}, {"host-1"}, {"host-2"}, {"Grüße, 世界"}, {"\x00\xff"},
		{"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
		{"a", "b"}, {"ab"}, {"b", "a"},
		{int64(0)}, {int64(1)}, {int64(-1)}, {int64(1<<62 + 12345)}, {int64(-9223372036854775808)},
		{uint64(18446744073709551615)}, {true}, {false}, {"x", true, int64(7)},
		{0.0}, {1.0}, {1.5}, {-2.25}, {0.1}, {1e21}, {1e20}, {1e-5}, {1e-4}, {123456789.0}, {16777217.0},
		{3.4028234663852886e38}, {1.17549435e-38}, {1e300}, {2.5e-7}, {-0.0},
	}
	for number := 0; number < 40; number++ {
		lists = append(lists, []any{fmt.Sprintf("key %d", number*number*7919)})
	}
	for _, list := range lists {
		hash := fnv.New32a()
		kinds := ""
		for _, value := range list {
			switch value := value.(type) {
			case string:
				kinds += "s"
				hash.Write([]byte(value))
			case float64:
				kinds += "f"
				hash.Write([]byte(strconv.FormatFloat(value, 'g', -1, 32)))
			case int64:
				kinds += "i"
				binary.Write(hash, binary.LittleEndian, value)
			case uint64:
				kinds += "u"
				binary.Write(hash, binary.LittleEndian, value)
			default:
				kinds += "b"
				binary.Write(hash, binary.LittleEndian, value)
			}
		}
		texts := make([]string, len(list))
		for at, value := range list {
			switch value := value.(type) {
			case string:
				texts[at] = fmt.Sprintf("%x", value)
			case float64:
				texts[at] = strconv.FormatUint(mathBits(value), 10)
			default:
				texts[at] = fmt.Sprint(value)
			}
		}
		encoded, _ := json.Marshal(texts)
		sum := hash.Sum32()
		fmt.Printf("%s\t%s\t%d", kinds, encoded, sum)
		for _, partitions := range []int32{1, 2, 3, 7, 12, 100, 4096} {
			fmt.Printf("\t%d", (int32(sum)&0x7FFFFFFF)%partitions)
		}
		fmt.Println()
	}
}

func mathBits(value float64) uint64 {
	var bytes [8]byte
	binary.Encode(bytes[:], binary.LittleEndian, value)
	return binary.LittleEndian.Uint64(bytes[:])
}
