import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  cacheFolder,
  GO_MODULES,
  KUBERNETES_VERSIONS,
  programOf,
  TOOL_NAMES,
  TOOLS,
  toolBundleOf,
} from '../../../operator/garden/toolchain/tools.ts';

/** Argo CD is written for Kubernetes 1.31: its libraries, and what these are written for. */
const OF_OLD_KUBERNETES =
  /^(k8s\.io\/(?!klog|utils)|sigs\.k8s\.io\/(kustomize|yaml)|github\.com\/(cyphar|go-openapi|google\/gnostic-models|jonboulle)|.*\/otelgrpc$)/;
/** What runs Kubernetes' tests has these, and none of the programs that a garden needs. */
const OF_GINKGO = /^(golang\.org\/x\/mod|github\.com\/Masterminds\/semver\/v3)$/;

test('every tool has a source beside cache and PATH', () => {
  for (const name of TOOL_NAMES) {
    const { archive, build, package: pkg } = TOOLS[name];
    expect(archive ?? build ?? pkg, name).toBeDefined();
  }
});

test('versions in the table are those of the committed modules', () => {
  const modules = [
    ['kube-apiserver', 'k8s.io/kubernetes v'],
    ['kube-apiserver-1.35', 'k8s.io/kubernetes v'],
    ['e2e.test', 'k8s.io/kubernetes v'],
    ['etcd', 'go.etcd.io/etcd/server/v3 v'],
    ['kwok', 'sigs.k8s.io/kwok v'],
    ['coredns', 'github.com/coredns/coredns v'],
    ['pulumi', 'github.com/pulumi/pulumi/pkg/v3 v'],
    ['proxy-server', 'sigs.k8s.io/apiserver-network-proxy v'],
    ['proxy-agent', 'sigs.k8s.io/apiserver-network-proxy v'],
    ['local-path-provisioner', 'github.com/rancher/local-path-provisioner v'],
    ['metrics-server', 'sigs.k8s.io/metrics-server v'],
    ['argo-cd', 'github.com/argoproj/argo-cd/v2 v'],
    ['helm', 'helm.sh/helm/v4 v'],
  ] as const;
  for (const [name, line] of modules) {
    const goMod = readFileSync(join(GO_MODULES, TOOLS[name].build!.module, 'go.mod'), 'utf8');
    expect(goMod, name).toContain(line + TOOLS[name].version);
  }
});

test('profiles of local machines and of simulated ones offer the versions that can be made', () => {
  for (const profile of ['local', 'simulated', 'simulated-scale']) {
    const text = readFileSync(join('profiles', `${profile}.yaml`), 'utf8');
    const offered = [...text.matchAll(/\{version: ([\d.]+),/g)].map(([, version]) => version);
    expect(offered, profile).toEqual([...KUBERNETES_VERSIONS]);
  }
});

test('libraries that Kubernetes has too are at its version, so that they are compiled once', () => {
  const ours = new Map([...versionsIn('kubernetes')].filter(([name]) => !OF_GINKGO.test(name)));
  const modules = ['coredns', 'kwok', 'konnectivity', 'local-path-provisioner', 'metrics-server', 'argo-cd', 'helm'];
  for (const module of modules) {
    const apart = module === 'argo-cd' ? OF_OLD_KUBERNETES : /^go\.etcd\.io\/etcd\//;
    const shared = [...versionsIn(module)].filter(([name]) => ours.has(name) && !apart.test(name));
    expect(shared.length, module).toBeGreaterThan(
      ['konnectivity', 'local-path-provisioner'].includes(module) ? 40 : 50,
    );
    expect(
      shared.filter(([name, version]) => ours.get(name) !== version),
      module,
    ).toEqual([]);
  }
});

test('tools of one group are of one module, with the same flags, and named as their packages', () => {
  for (const name of TOOL_NAMES) {
    const { build } = TOOLS[name];
    if (!build) continue;
    expect(existsSync(join(GO_MODULES, build.module, 'go.mod')), name).toBe(true);
    const group = TOOL_NAMES.filter((other) => TOOLS[other].build?.group === build.group);
    for (const other of group) {
      expect(TOOLS[other].build).toMatchObject({ module: build.module, ldflags: build.ldflags });
      if (group.length > 1) expect(TOOLS[other].build!.package.split('/').at(-1)).toBe(programOf(other));
    }
  }
});

test('a bundle lies in one folder', () => {
  for (const name of TOOL_NAMES) {
    expect(toolBundleOf(name)).toContain(name);
    expect(new Set(toolBundleOf(name).map(cacheFolder)).size, name).toBe(1);
  }
});

/** Versions that a committed module builds with: required, and then replaced. */
function versionsIn(module: string): Map<string, string> {
  const goMod = readFileSync(join(GO_MODULES, module, 'go.mod'), 'utf8');
  const required = goMod.matchAll(/^\s+(\S+) (v\S+)/gm);
  const replaced = goMod.matchAll(/^\s+(\S+) => \1 (v\S+)/gm);
  return new Map([...required, ...replaced].map((match) => [match[1]!, match[2]!]));
}
