module profiles

go 1.25

require github.com/google/pprof v0.0.0-20250403155104-27863c87afa6
