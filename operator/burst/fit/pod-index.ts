import type { FitPod, Labels } from './model.ts';

const NOBODY: ReadonlySet<FitPod> = new Set();
/** Key for all pods of a namespace, or for terms without a required label. */
const ANY = '';

/**
 * Index of existing pods by namespace and label: comparing thousands of kinds of pods with each other would be
 * quadratic.
 */
export class PodIndex {
  readonly #all: () => Iterable<FitPod>;
  /**
   * By namespace and label (`key=value`). undefined: not built yet, because most workloads have no rules about other
   * pods.
   */
  #pods: Map<string, Map<string, Set<FitPod>>> | undefined;
  /** Pods with a term of anti-affinity, by the label that the term requires. */
  readonly #unfriendly = new Map<string, Set<FitPod>>();

  /** @param all pods to index on first use */
  constructor(all: () => Iterable<FitPod>) {
    this.#all = all;
  }

  add(pod: FitPod): void {
    if (this.#pods) addTo(this.#pods, pod);
    for (const { label = ANY } of pod.antiAffinity)
      this.#unfriendly.set(label, (this.#unfriendly.get(label) ?? new Set()).add(pod));
  }

  delete(pod: FitPod): void {
    const there = this.#pods?.get(pod.namespace);
    if (there) {
      for (const label of [ANY, ...written(pod.labels)]) forget(there, label, pod);
      if (there.size === 0) this.#pods?.delete(pod.namespace);
    }
    for (const { label = ANY } of pod.antiAffinity) forget(this.#unfriendly, label, pod);
  }

  namespaces(): Iterable<string> {
    return this.#indexed().keys();
  }

  /** Pods of a namespace; with a label: those that have it. */
  in(namespace: string, label: string = ANY): ReadonlySet<FitPod> {
    return this.#indexed().get(namespace)?.get(label) ?? NOBODY;
  }

  #indexed(): Map<string, Map<string, Set<FitPod>>> {
    if (!this.#pods) {
      this.#pods = new Map();
      for (const pod of this.#all()) addTo(this.#pods, pod);
    }
    return this.#pods;
  }

  /** Whether any pod has anti-affinity. */
  get hasUnfriendly(): boolean {
    return this.#unfriendly.size > 0;
  }

  /** Pods whose anti-affinity may match one of these labels. A pod may occur twice. */
  *unfriendlyTo(labels: Labels): Generator<FitPod> {
    if (!this.hasUnfriendly) return;
    for (const label of [ANY, ...written(labels)]) yield* this.#unfriendly.get(label) ?? NOBODY;
  }
}

function addTo(pods: Map<string, Map<string, Set<FitPod>>>, pod: FitPod): void {
  const there = pods.get(pod.namespace) ?? new Map<string, Set<FitPod>>();
  pods.set(pod.namespace, there);
  for (const label of [ANY, ...written(pod.labels)]) there.set(label, (there.get(label) ?? new Set()).add(pod));
}

const written = (labels: Labels): string[] => Object.entries(labels).map(([key, value]) => `${key}=${value}`);

function forget(index: Map<string, Set<FitPod>>, key: string, pod: FitPod): void {
  const pods = index.get(key);
  pods?.delete(pod);
  if (pods?.size === 0) index.delete(key);
}
