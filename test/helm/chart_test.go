package helm

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// one and several are the values of deploy/kubernetes.
const (
	image   = "image: {repository: registry.example.com/weir, tag: VERSION}\n"
	one     = image
	several = image + "replicas: 2\nexistingSecret: weir\ndatabase: {existingSecret: weir-database}\n"
)

// render renders the chart with values as helm does, after its schema has accepted them.
func render(t *testing.T, values string) (string, error) {
	t.Helper()
	c, err := loader.Load(filepath.Join(root, "deploy/helm/weir"))
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "weir", Namespace: "weir"}, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(c, all)
	return files["weir/templates/weir.yaml"], err
}

// objects are the rendered objects by kind, each read strictly as the type of its kind.
type objects map[string]any

func read(t *testing.T, values string) objects {
	t.Helper()
	text, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	all := objects{}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		var v any
		switch head.APIVersion + " " + head.Kind {
		case "v1 ServiceAccount":
			v = &core.ServiceAccount{}
		case "v1 Service":
			v = &core.Service{}
		case "v1 PersistentVolumeClaim":
			v = &core.PersistentVolumeClaim{}
		case "apps/v1 Deployment":
			v = &apps.Deployment{}
		case "policy/v1 PodDisruptionBudget":
			v = &policy.PodDisruptionBudget{}
		case "networking.k8s.io/v1 Ingress":
			v = &networking.Ingress{}
		case "monitoring.coreos.com/v1 PodMonitor":
			v = &map[string]any{}
		default:
			t.Fatalf("an object of %s %s", head.APIVersion, head.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(doc), v); err != nil {
			t.Fatalf("%s: %v\n%s", head.Kind, err, doc)
		}
		all[head.Kind] = v
	}
	return all
}

func (o objects) kinds() string {
	var list []string
	for kind := range o {
		list = append(list, kind)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestOneServerHasAVolume(t *testing.T) {
	o := read(t, one)
	if got := o.kinds(); got != "Deployment PersistentVolumeClaim Service ServiceAccount" {
		t.Fatalf("objects are %s", got)
	}
	d := o["Deployment"].(*apps.Deployment)
	if *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != apps.RecreateDeploymentStrategyType {
		t.Errorf("%d replicas, strategy %v", *d.Spec.Replicas, d.Spec.Strategy)
	}
	if claim := d.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim; claim == nil || claim.ClaimName != "weir" {
		t.Errorf("the volume is %+v", d.Spec.Template.Spec.Volumes[0])
	}
}

func TestSeveralServersShareADatabase(t *testing.T) {
	o := read(t, several+"ingress: {enabled: true, host: weir.example.com}\npodMonitor: {enabled: true}\n")
	if got := o.kinds(); got != "Deployment Ingress PodDisruptionBudget PodMonitor Service ServiceAccount" {
		t.Fatalf("objects are %s", got)
	}
	d := o["Deployment"].(*apps.Deployment)
	pod := d.Spec.Template.Spec
	if r := d.Spec.Strategy.RollingUpdate; r == nil || r.MaxUnavailable.IntValue() != 0 || len(pod.TopologySpreadConstraints) != 2 {
		t.Errorf("strategy %+v, spread %+v", d.Spec.Strategy, pod.TopologySpreadConstraints)
	}
	var paths []string
	for _, v := range pod.Containers[0].Env {
		if strings.HasSuffix(v.Name, "_FILE") {
			paths = append(paths, v.Value)
		}
	}
	want := []string{"/secrets/database/database-url", "/secrets/weir/admin-token", "/secrets/weir/api-key-secret", "/secrets/weir/credentials-key"}
	if !slices.Equal(paths, want) {
		t.Errorf("secrets are read from %v", paths)
	}
	if i := o["Ingress"].(*networking.Ingress); i.Annotations["nginx.ingress.kubernetes.io/proxy-buffering"] != "off" {
		t.Errorf("the ingress has the annotations %v", i.Annotations)
	}
}

func TestPodIsConfinedAndDrains(t *testing.T) {
	for _, values := range []string{one, several} {
		pod := read(t, values)["Deployment"].(*apps.Deployment).Spec.Template.Spec
		c := pod.Containers[0]
		s := c.SecurityContext
		if !*pod.SecurityContext.RunAsNonRoot || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities.Drop[0] != "ALL" ||
			*pod.AutomountServiceAccountToken || pod.SecurityContext.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			t.Errorf("the pod is not confined: %+v %+v", pod.SecurityContext, s)
		}
		if c.LivenessProbe.HTTPGet.Path != "/health" || c.StartupProbe.HTTPGet.Path != "/health" || c.ReadinessProbe.HTTPGet.Path != "/health/ready" {
			t.Error("probes ask other paths")
		}
		// DRAIN and 25 s of the program, see server/program.
		if *pod.TerminationGracePeriodSeconds != c.Lifecycle.PreStop.Sleep.Seconds+55 {
			t.Errorf("a stop has %d s", *pod.TerminationGracePeriodSeconds)
		}
		pod = read(t, values+"drain: 300\n")["Deployment"].(*apps.Deployment).Spec.Template.Spec
		drain := core.EnvVar{Name: "DRAIN", Value: "300"}
		if *pod.TerminationGracePeriodSeconds != 330 || !slices.Contains(pod.Containers[0].Env, drain) {
			t.Errorf("a longer stop has %d s, %+v", *pod.TerminationGracePeriodSeconds, pod.Containers[0].Env)
		}
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	for _, tt := range []struct{ values, reason string }{
		{"", "repository"},
		{image + "replicas: 0", "replicas"},
		{image + "replicas: two", "replicas"},
		{image + "drain: 0", "drain"},
		{image + "replicas: 2", "existingSecret"},
		{image + "replicas: 2\nexistingSecret: weir", "database"},
		{image + "database: {existingSecret: a}", "share its secrets"},
		{image + "replicaCount: 2", "replicaCount"},
		{image + "existingSecret: 'a\nb: c'", "existingSecret"},
		{image + "publicURL: 'https://a/b'", "publicURL"},
		{image + "environment: {ADMIN_TOKEN: secret}", "ADMIN_TOKEN"},
		{image + "environment: {LOG_LEVEL: 1}", "LOG_LEVEL"},
		{image + "environment: {'A: b': c}", "A: b"},
		{image + "persistence: {size: 10 GB}", "size"},
		{image + "ingress: {enabled: true}", "host"},
		{image + "ingress: {enabled: 'yes'}", "enabled"},
		{image + "service: {port: 70000}", "port"},
		{"image: {repository: 'a b', tag: x}", "repository"},
		{"image: {repository: a, tag: 'x\"'}", "tag"},
	} {
		if _, err := render(t, tt.values); err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%q: %v", tt.values, err)
		}
	}
	o := read(t, image+"environment: {LOG_LEVEL: \"a\\\"\\n- b: {{ .Values }}\"}")
	env := o["Deployment"].(*apps.Deployment).Spec.Template.Spec.Containers[0].Env
	if got := env[len(env)-1].Value; got != "a\"\n- b: {{ .Values }}" {
		t.Errorf("a value became %q", got)
	}
}

// The plain manifests are what the chart renders; GOLDEN=update writes them.
func TestManifestsAreThoseOfTheChart(t *testing.T) {
	for name, values := range map[string]string{"one.yaml": one, "several.yaml": several} {
		text, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, "deploy/kubernetes", name)
		want := []byte("# Rendered from deploy/helm/weir: set the image, then kubectl apply -f " + name + "\n---\n" + strings.TrimSpace(text) + "\n")
		if os.Getenv("GOLDEN") == "update" {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the chart renders (GOLDEN=update writes it): %v", path, err)
		}
	}
}
