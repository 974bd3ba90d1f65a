// Reads a profile as pprof does, and says what is in it: its values with their sums, and the names of its functions.
package main

import (
	"fmt"
	"os"

	"github.com/google/pprof/profile"
)

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		fail(err)
	}
	read, err := profile.Parse(file)
	if err != nil {
		fail(err)
	}
	// Every number leads somewhere, every sample has all values.
	if err := read.CheckValid(); err != nil {
		fail(err)
	}
	for i, kind := range read.SampleType {
		var sum int64
		for _, sample := range read.Sample {
			sum += sample.Value[i]
		}
		fmt.Printf("sum %s %s %d\n", kind.Type, kind.Unit, sum)
	}
	fmt.Printf("seconds %g\n", float64(read.DurationNanos)/1e9)
	if len(read.Mapping) > 0 {
		fmt.Printf("program %s %s\n", read.Mapping[0].BuildID, read.Mapping[0].File)
	}
	for _, function := range read.Function {
		fmt.Printf("function %s\n", function.Name)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
