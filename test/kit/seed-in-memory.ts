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
import type { MemoryApiServer } from './memory-api-server.ts';

/** What one operator knows of a shoot of a seed in memory, and its Events. */
export interface OperatorInSeed {
  readonly state: ShootState;
  readonly events: string[];
  operation(shoot: Shoot, more?: Partial<Operation>): Operation;
}

/** An operator that has just started, in front of a seed in memory. Its caches are never behind, and know only what is labelled. */
export function operatorInSeed(server: MemoryApiServer, now: () => Date): OperatorInSeed {
  const state = newShootState();
  const events: string[] = [];
  const labelled = () => new Map([...server.objects].filter(([, { metadata }]) => metadata.labels?.[LABELS.shoot]));
  const cacheOf = (resource: Resource) => server.cache(resource, {}, labelled);
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
          gardenID: 'garden',
          now,
          recordEvent: (_: unknown, type: string, reason: string) => void events.push(`${type} ${reason}`),
        },
        seed: { name: 'local', client: server, applier, ...caches },
        ...more,
      }) as unknown as Operation,
  };
}
