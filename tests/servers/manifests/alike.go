package main

import (
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Whether the first two files put the same pods on the nodes, with the same rights. One may give the endpoint as arguments, the other in the
// configuration.
func checkAlike(files [][]any) error {
	if len(files) < 2 {
		return fmt.Errorf("there are only %d", len(files))
	}
	one, other := partsOf(files[0]), partsOf(files[1])
	if one.pod == nil || other.pod == nil {
		return fmt.Errorf("one has no DaemonSet")
	}
	pairs := []struct {
		what       string
		one, other any
	}{
		{"pod", one.pod, other.pod},
		{"rules of the role", one.rules, other.rules},
		{"configuration", one.config, other.config},
	}
	for _, pair := range pairs {
		if !reflect.DeepEqual(pair.one, pair.other) {
			return fmt.Errorf("%s:\n%+v\n%+v", pair.what, pair.one, pair.other)
		}
	}
	return nil
}

type parts struct {
	pod    *corev1.PodSpec
	rules  []rbacv1.PolicyRule
	config string
}

func partsOf(objects []any) parts {
	var found parts
	for _, object := range objects {
		switch of := object.(type) {
		case *appsv1.DaemonSet:
			found.pod = &of.Spec.Template.Spec
			for i := range found.pod.Containers {
				container := &found.pod.Containers[i]
				container.Args = withoutEndpoint(container.Args)
				// What the API server takes for a tag, if nothing is said.
				if container.ImagePullPolicy == "" {
					container.ImagePullPolicy = corev1.PullIfNotPresent
				}
			}
		case *rbacv1.ClusterRole:
			found.rules = of.Rules
		case *corev1.ConfigMap:
			found.config = settingsOf(of.Data["filebeat.yml"])
		}
	}
	return found
}

func withoutEndpoint(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		if args[i] == "-E" && i+1 < len(args) && strings.HasPrefix(args[i+1], "http.") {
			i++
			continue
		}
		kept = append(kept, args[i])
	}
	return kept
}

// The lines of a configuration without remarks and without the endpoint.
func settingsOf(text string) string {
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		plain := strings.TrimSpace(line)
		if plain != "" && !strings.HasPrefix(plain, "#") && !strings.HasPrefix(plain, "http.") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
