import { LABELS } from '../../operator/api/group.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { Operation } from '../../operator/controllers/shoot/operation.ts';
import { newShootState, type ShootState } from '../../operator/controllers/shoot/state.ts';
import { Applier } from '../../operator/kube/applier.ts';
import {
  CONFIGMAPS,
  DEPLOYMENTS,
  NAMESPACES,
  type Resource,
  SECRETS,
  STATEFULSETS,
} from '../../operator/kube/resources.ts';
import { controlPlane } from '../unit/shoot/values.ts';
import type { MemoryObjects } from './memory-objects.ts';

/** What one operator knows of a shoot of a seed in memory, and its Events. */
export interface OperatorInSeed {
  readonly state: ShootState;
  readonly events: string[];
  operation(shoot: Shoot, more?: Partial<Operation>): Operation;
}

/** An operator that has just started, in front of a seed in memory. Its caches are never behind, and know only what is labelled. */
export function operatorInSeed(server: MemoryObjects, now: () => Date): OperatorInSeed {
  const state = newShootState();
  const events: string[] = [];
  const cacheOf = (resource: Resource) => ({
    get(key: string) {
      const [namespace, name] = key.split('/') as [string, string?];
      const found = name === undefined ? server.find(resource, key) : server.find(resource, name, namespace);
      return found?.metadata.labels?.[LABELS.shoot] === undefined ? undefined : found;
    },
    absorb() {},
  });
  const caches = {
    namespaces: cacheOf(NAMESPACES),
    secrets: cacheOf(SECRETS),
    configMaps: cacheOf(CONFIGMAPS),
    deployments: cacheOf(DEPLOYMENTS),
    statefulSets: cacheOf(STATEFULSETS),
  };
  const applier = new Applier(server as never, () => ({ live: undefined }));
  return {
    state,
    events,
    operation: (shoot, more = {}) =>
      ({
        shoot,
        state,
        pki: {},
        values: controlPlane(),
        provider: {},
        names: [],
        deps: {
          now,
          recordEvent: (_: unknown, type: string, reason: string) => void events.push(`${type} ${reason}`),
        },
        seed: { name: 'local', client: server, applier, ...caches },
        ...more,
      }) as unknown as Operation,
  };
}
