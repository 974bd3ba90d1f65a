// Compresses each file by itself with compress/gzip at level 1, as Filebeat does with the bodies of its
// requests, and prints the sum of the lengths.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
)

func main() {
	total := 0
	for _, name := range os.Args[1:] {
		body, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		var packed bytes.Buffer
		writer, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
		if err != nil {
			panic(err)
		}
		if _, err := writer.Write(body); err != nil {
			panic(err)
		}
		if err := writer.Close(); err != nil {
			panic(err)
		}
		total += packed.Len()
	}
	fmt.Println(total)
}
