import { createHash } from 'node:crypto';
import type { Pod } from '../kube/resources.ts';

/** Labels that differ between pods of one template. */
const OF_ONE_POD = [
  'apps.kubernetes.io/pod-index',
  'statefulset.kubernetes.io/pod-name',
  'batch.kubernetes.io/job-completion-index',
  'batch.kubernetes.io/job-name',
  'batch.kubernetes.io/controller-uid',
  'job-name',
  'controller-uid',
];

/** Short digest of a value's JSON. */
const digestOf = (value: unknown): string => digestOfText(JSON.stringify(value));

const digestOfText = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 16);

/** Most cached digests. */
const MOST_KEPT = 1000;

/** Caches digests, for a few values that are digested again and again. */
export class KeptDigests {
  readonly #known = new Map<string, string>();

  of(value: unknown): string {
    const text = JSON.stringify(value);
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (this.#known.size >= MOST_KEPT) this.#known.clear();
    const digest = digestOfText(text);
    this.#known.set(text, digest);
    return digest;
  }
}

const known = new WeakMap<Pod, string>();

/** Digest of everything that decides where a pod fits: equal for pods of one template, stable across restarts. */
export function likenessOf(pod: Pod): string {
  let found = known.get(pod);
  if (found === undefined) {
    found = digestOf(whatDecides(pod));
    known.set(pod, found);
  }
  return found;
}

interface Container {
  resources?: unknown;
  ports?: { hostPort?: number }[];
  restartPolicy?: string;
}

function whatDecides({ metadata, spec }: Pod): unknown {
  const ofContainers = (containers: unknown) =>
    ((containers ?? []) as Container[]).map(({ resources, ports = [], restartPolicy }) => [
      resources,
      ports.filter(({ hostPort }) => hostPort),
      restartPolicy,
    ]);
  return [
    metadata.namespace,
    Object.entries(metadata.labels ?? {})
      .filter(([key]) => !OF_ONE_POD.includes(key))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
    ofContainers(spec.containers),
    ofContainers(spec.initContainers),
    spec.resources,
    spec.overhead,
    spec.nodeSelector,
    spec.affinity,
    spec.tolerations,
    spec.topologySpreadConstraints,
    ((spec.volumes ?? []) as { persistentVolumeClaim?: object }[]).flatMap(
      (volume) => volume.persistentVolumeClaim ?? [],
    ),
    spec.priority,
    spec.schedulerName,
    spec.resourceClaims,
    spec.hostNetwork,
  ];
}
