import type { PersistentVolume, PersistentVolumeClaim } from '../../../kube/resources.ts';
import type { ClaimUse, FitNode, FitPod, Labels, Misfit } from '../model.ts';
import type { NotJudgedReason } from '../not-judged.ts';
import { labelOf, type NodeSelectorTerm, nodeSelectorTerms } from '../selectors.ts';
import type { ClusterState, NodeState } from '../state.ts';
import type { StorageClass, VolumeFacts } from '../volume-facts.ts';
import { classOf } from './claim-class.ts';

/** In-tree volume sources and the CSI drivers that replaced them. */
const IN_TREE: Record<string, string> = {
  awsElasticBlockStore: 'ebs.csi.aws.com',
  azureDisk: 'disk.csi.azure.com',
  cinder: 'cinder.csi.openstack.org',
  gcePersistentDisk: 'pd.csi.storage.gke.io',
  portworxVolume: 'pxd.portworx.com',
};

/** Whether an in-tree driver made the volume: each driver has its own rules for zones. */
const isInTree = (volume: PersistentVolume): boolean =>
  Object.keys(IN_TREE).some((source) => volume.spec[source] !== undefined);

interface CSISource {
  driver: string;
  volumeHandle: string;
}

/** Attached volumes of a pod by unique name, with their driver. */
function volumesOf(pod: FitPod, { claims, volumes, classes }: VolumeFacts): Map<string, string> {
  const found = new Map<string, string>();
  for (const { name } of pod.claims) {
    const claim = claims.get(`${pod.namespace}/${name}`);
    if (!claim) continue;
    const volume = claim.spec.volumeName ? volumes.get(claim.spec.volumeName) : undefined;
    const inTree = volume && Object.keys(IN_TREE).find((source) => volume.spec[source] !== undefined);
    const csi = volume?.spec.csi as CSISource | undefined;
    if (csi) found.set(`${csi.driver}/${csi.volumeHandle}`, csi.driver);
    else if (inTree) found.set(`${IN_TREE[inTree]}/${volume.metadata.name}`, IN_TREE[inTree]!);
    else if (!volume) {
      // The volume does not exist yet: its class names the driver.
      const driver = classes.get(classOf(claim))?.provisioner;
      if (driver) found.set(`${driver} for ${pod.namespace}/${name}`, driver);
    }
  }
  return found;
}

/**
 * NodeVolumeLimits: whether the pod's volumes exceed the node's attach limit, together with volumes of its pods (each
 * once) and volumes that are still attached.
 */
function exceedsAttachLimit(pod: FitPod, { node, pods }: NodeState, facts: VolumeFacts): boolean {
  if (node.attachLimits.size === 0) return false;
  const wanted = volumesOf(pod, facts);
  if (wanted.size === 0) return false;
  const attached = new Map<string, string>();
  for (const other of pods.keys())
    if (other.claims.length > 0) for (const [volume, driver] of volumesOf(other, facts)) attached.set(volume, driver);
  for (const volume of attached.keys()) wanted.delete(volume);
  for (const [name, driver] of facts.attached.get(node.name) ?? []) {
    const csi = facts.volumes.get(name)?.spec.csi as CSISource | undefined;
    if (csi) attached.set(`${driver}/${csi.volumeHandle}`, driver);
  }
  for (const driver of new Set(wanted.values())) {
    const limit = node.attachLimits.get(driver);
    if (limit !== undefined && countOf(attached, driver) + countOf(wanted, driver) > limit) return true;
  }
  return false;
}

const countOf = (volumes: ReadonlyMap<string, string>, driver: string): number =>
  [...volumes.values()].filter((one) => one === driver).length;

const BOUND = 'pv.kubernetes.io/bind-completed';
const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

const misfit = (plugin: Misfit['plugin'], message: string, everywhere = false): Misfit => ({
  plugin,
  message,
  everywhere,
});

const NOT_REACHED = misfit('VolumeBinding', "node(s) didn't match PersistentVolume's node affinity");
const NOT_FOR_NODE = misfit('VolumeBinding', "node(s) didn't find available persistent volumes to bind");
const TOO_MANY = misfit('NodeVolumeLimits', 'node(s) exceed max volume count');
const OTHER_ZONE = misfit('VolumeZone', 'node(s) had no available volume zone');
const ALONE = misfit(
  'VolumeRestrictions',
  'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
  true,
);

type Terms = readonly NodeSelectorTerm[] | undefined;
type Accepts = (node: FitNode) => boolean;

/** Claims of one pod: faults for all nodes (`everywhere`), for single nodes, and parts that are not modelled. */
export class PodVolumes {
  readonly notJudged: readonly NotJudgedReason[];
  readonly everywhere: readonly Misfit[];
  readonly #pod: FitPod;
  readonly #facts: VolumeFacts | undefined;
  /** Node conditions of the bound volumes. */
  readonly #reached: Accepts[] = [];
  /** Node conditions of volumes that are yet to be created. */
  readonly #makeable: Accepts[] = [];
  readonly #zones: { key: string; values: ReadonlySet<string> }[] = [];
  /** ReadWriteOncePod claims, and the number of their users. */
  readonly #exclusive = new Set<string>();
  #users = 0;

  constructor(pod: FitPod, state: ClusterState) {
    this.#pod = pod;
    this.#facts = state.facts.volumes;
    const notJudged = new Set<NotJudgedReason>();
    this.everywhere = this.#facts ? this.#read(this.#facts, state, notJudged) : [];
    if (!this.#facts) notJudged.add('VolumesUnknown');
    this.notJudged = [...notJudged];
  }

  /**
   * Faults of the first volume plugin that rejects: VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone.
   */
  misfits(at: NodeState): readonly Misfit[] {
    if (this.#users > 0) return [ALONE];
    if (this.#facts && exceedsAttachLimit(this.#pod, at, this.#facts)) return [TOO_MANY];
    const byBinding = [
      ...(this.#reached.every((accepts) => accepts(at.node)) ? [] : [NOT_REACHED]),
      ...(this.#makeable.every((accepts) => accepts(at.node)) ? [] : [NOT_FOR_NODE]),
    ];
    if (byBinding.length > 0) return byBinding;
    return isInZones(this.#zones, at.node.labels) ? [] : [OTHER_ZONE];
  }

  /** Records a pod on a node. `by` -1: removes it. */
  placed(other: FitPod, by: 1 | -1): void {
    if (other.namespace !== this.#pod.namespace) return;
    for (const { name } of other.claims) if (this.#exclusive.has(name)) this.#users += by;
  }

  /** Reads the claims. Returns faults for all nodes, in the scheduler's order. */
  #read(facts: VolumeFacts, state: ClusterState, notJudged: Set<NotJudgedReason>): Misfit[] {
    const { namespace, claims } = this.#pod;
    const found: { use: ClaimUse; claim: PersistentVolumeClaim }[] = [];
    for (const use of claims) {
      const claim = facts.claims.get(`${namespace}/${use.name}`);
      if (claim) found.push({ use, claim });
      else
        return never(
          use.owner === undefined ? 'VolumeRestrictions' : 'VolumeBinding',
          use.owner === undefined
            ? `persistentvolumeclaim "${use.name}" not found`
            : `waiting for ephemeral volume controller to create the persistentvolumeclaim "${use.name}"`,
        );
    }
    for (const { use, claim } of found) {
      const { name, deletionTimestamp, ownerReferences } = claim.metadata;
      if (claim.status?.phase === 'Lost')
        return never(
          'VolumeBinding',
          `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${claim.spec.volumeName}"`,
        );
      if (deletionTimestamp) return never('VolumeBinding', `persistentvolumeclaim "${name}" is being deleted`);
      if (use.owner !== undefined && !ownerReferences?.some(({ uid, controller }) => controller && uid === use.owner))
        return never('VolumeBinding', `PVC ${namespace}/${name} was not created for pod (pod is not owner)`);
      if (claim.spec.accessModes?.includes('ReadWriteOncePod') && use.owner === undefined) {
        this.#exclusive.add(name);
        this.#users += state.usersOf(namespace, name);
      }
    }
    const waiting = found.filter(({ claim }) => !isBound(claim));
    for (const { claim } of waiting) {
      const storageClass = facts.classes.get(classOf(claim));
      if (claim.spec.volumeName || storageClass?.volumeBindingMode !== 'WaitForFirstConsumer')
        return never('VolumeBinding', 'pod has unbound immediate PersistentVolumeClaims');
      this.#toBeMade(claim, storageClass, facts, notJudged);
    }
    for (const { use, claim } of found) {
      if (waiting.some((other) => other.claim === claim)) continue;
      const volume = facts.volumes.get(claim.spec.volumeName!);
      if (!volume)
        return use.owner === undefined
          ? never('VolumeZone', `persistentvolume "${claim.spec.volumeName}" not found`)
          : never('VolumeBinding', 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)');
      this.#isThere(volume, use.owner === undefined, notJudged);
    }
    return [];
  }

  #toBeMade(
    claim: PersistentVolumeClaim,
    { provisioner, allowedTopologies = [] }: StorageClass,
    { driversWithCapacity }: VolumeFacts,
    notJudged: Set<NotJudgedReason>,
  ): void {
    if (!provisioner || provisioner === NO_PROVISIONER) notJudged.add('StaticVolumes');
    if (driversWithCapacity.has(provisioner ?? '')) notJudged.add('StorageCapacity');
    const selected = claim.metadata.annotations?.[SELECTED_NODE];
    // The volume is being created for a node that may be gone.
    if (selected !== undefined) this.#makeable.push(({ name }) => name === selected);
    if (allowedTopologies.length === 0) return;
    const accepts = nodeSelectorTerms(
      allowedTopologies.map(({ matchLabelExpressions = [] }) => ({
        matchExpressions: matchLabelExpressions.map(({ key, values = [] }) => ({ key, operator: 'In', values })),
      })),
    );
    this.#makeable.push(accepts);
  }

  #isThere(volume: PersistentVolume, hasZones: boolean, notJudged: Set<NotJudgedReason>): void {
    if (isInTree(volume)) notJudged.add('InTreeVolume');
    const accepts = reachedFrom(volume);
    if (accepts) this.#reached.push(accepts);
    if (hasZones) this.#zones.push(...zonesOf(volume.metadata.labels ?? {}));
  }
}

/** Whether a claim is bound. */
export const isBound = ({ spec, metadata }: PersistentVolumeClaim): boolean =>
  Boolean(spec.volumeName) && Boolean(metadata.annotations?.[BOUND]);

/** Nodes that reach a volume, by its node affinity; undefined: all. */
export function reachedFrom(volume: PersistentVolume): Accepts | undefined {
  const terms = volume.spec.nodeAffinity?.required?.nodeSelectorTerms as Terms;
  // The scheduler matches a volume against node labels, not against the node's name.
  return terms && nodeSelectorTerms(terms.map(({ matchExpressions = [] }) => ({ matchExpressions })));
}

const never = (plugin: Misfit['plugin'], message: string): Misfit[] => [misfit(plugin, message, true)];

const ZONE_KEYS: Record<string, string> = {
  'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone': 'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region': 'topology.kubernetes.io/region',
};

/** Zones and regions in a volume's labels, which join several by two underscores. */
const zonesOf = (labels: Labels): { key: string; values: ReadonlySet<string> }[] =>
  Object.keys(ZONE_KEYS).flatMap((key) => {
    const value = labelOf(labels, key);
    return value === undefined ? [] : [{ key, values: new Set(value.split('__').map((zone) => zone.trim())) }];
  });

/** A node without zone and region labels accepts all: a cluster in one zone may have none. */
function isInZones(zones: readonly { key: string; values: ReadonlySet<string> }[], labels: Labels): boolean {
  if (zones.length === 0 || !Object.keys(ZONE_KEYS).some((key) => labelOf(labels, key) !== undefined)) return true;
  return zones.every(({ key, values }) => {
    const value = labelOf(labels, key) ?? labelOf(labels, ZONE_KEYS[key]!);
    return value !== undefined && values.has(value);
  });
}
