// Reads Kubernetes manifests as the API server does, strictly: an unknown or doubled key, a wrong type or an unknown kind is an error;
// and container files.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

func check(path, text string) (any, error) {
	var of head
	if err := yaml.Unmarshal([]byte(text), &of); err != nil {
		return nil, err
	}
	kinds := map[string]any{
		"v1 Namespace":      &corev1.Namespace{},
		"v1 ConfigMap":      &corev1.ConfigMap{},
		"v1 ServiceAccount": &corev1.ServiceAccount{},
		"rbac.authorization.k8s.io/v1 ClusterRole":        &rbacv1.ClusterRole{},
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
		"apps/v1 DaemonSet":                               &appsv1.DaemonSet{},
	}
	into, known := kinds[of.APIVersion+" "+of.Kind]
	if !known {
		return nil, fmt.Errorf("`%s %s` is not known here", of.APIVersion, of.Kind)
	}
	plain, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	unknown, err := json.UnmarshalStrict(plain, into)
	if err == nil {
		err = errors.Join(unknown...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", of.Kind, of.Metadata.Name, err)
	}
	if wrong := validation.IsDNS1123Subdomain(of.Metadata.Name); len(wrong) > 0 {
		return nil, fmt.Errorf("%s `%s`: %s", of.Kind, of.Metadata.Name, strings.Join(wrong, "; "))
	}
	switch of := into.(type) {
	case *appsv1.DaemonSet:
		err = checkSet(of)
	case *corev1.ConfigMap:
		err = writeFiles(path, of)
	}
	return into, err
}

// Puts the files of a map into the folder $CONFIG_MAPS, to be tried, with the name of the manifest before theirs.
func writeFiles(path string, of *corev1.ConfigMap) error {
	folder := os.Getenv("CONFIG_MAPS")
	if folder == "" {
		return nil
	}
	for name, text := range of.Data {
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(path)+"-"+name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// What the types do not say: every mount has its volume, and the selector finds the pods.
func checkSet(set *appsv1.DaemonSet) error {
	pod := set.Spec.Template
	for key, value := range set.Spec.Selector.MatchLabels {
		if pod.Labels[key] != value {
			return fmt.Errorf("the selector `%s: %s` finds no pod", key, value)
		}
	}
	volumes := map[string]bool{}
	for _, volume := range pod.Spec.Volumes {
		volumes[volume.Name] = false
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, mount := range container.VolumeMounts {
			if _, there := volumes[mount.Name]; !there {
				return fmt.Errorf("`%s` mounts `%s`, which is no volume", container.Name, mount.Name)
			}
			volumes[mount.Name] = true
		}
	}
	for name, mounted := range volumes {
		if !mounted {
			return fmt.Errorf("nobody mounts the volume `%s`", name)
		}
	}
	return nil
}

func main() {
	count := 0
	var files [][]any
	for _, path := range os.Args[1:] {
		if filepath.Base(path) == "Dockerfile" {
			if err := checkContainerFile(path); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
				os.Exit(1)
			}
			count++
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		var objects []any
		for _, document := range strings.Split("\n"+string(text), "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			object, err := check(path, document)
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
				os.Exit(1)
			}
			objects = append(objects, object)
			count++
		}
		files = append(files, objects)
	}
	if os.Getenv("ALIKE") != "" {
		if err := checkAlike(files); err != nil {
			fmt.Fprintf(os.Stderr, "the manifests of the first two files differ: %v\n", err)
			os.Exit(1)
		}
	}
	fmt.Printf("%d manifests and container files are in order\n", count)
}
