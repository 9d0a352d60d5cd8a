import { isDeepStrictEqual } from 'node:util';
import { type Shoot, shootProfileName } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { profileNamesOf } from '../../capacity/places.ts';
import type { ChangeEvent } from '../../kube/informer.ts';
import { keyOf } from '../../kube/resources.ts';
import type { Core, Part } from '../core.ts';
import { failuresOf } from '../failure.ts';
import { grantedMachineTypesOf } from '../kept-profile.ts';
import { reconcileCloudProfile } from './controller.ts';

/** Delay that groups changes: each check scans all clusters. */
const USERS_MS = 100;

/** Creates the controller of CloudProfiles: validates profiles, and holds used ones. */
export function wireCloudProfiles(core: Core): Part {
  const { clusters, shoots, profiles } = core;
  const queue = core.queue('cloudprofile');
  /** A cluster never changes its profile: only new and deleted clusters, and changed machine types, matter. */
  const used = (event: ChangeEvent<WorkerCluster> | ChangeEvent<Shoot>, profile: string) => {
    if (
      event.type !== 'updated' ||
      !isDeepStrictEqual(grantedMachineTypesOf(event.old), grantedMachineTypesOf(event.object))
    )
      queue.addAfter(profile, USERS_MS);
  };
  profiles.onChange(({ object }) => queue.add(keyOf(object)));
  clusters.onChange((event) => {
    for (const profile of profileNamesOf(event.object)) used(event, profile);
  });
  shoots.onChange((event) => used(event, shootProfileName(event.object.spec)));
  return {
    controllers: [
      {
        name: 'cloudprofile',
        queue,
        concurrency: 4,
        reconcile: (key, stop) => reconcileCloudProfile(core, key, stop),
        failed: failuresOf(core, profiles),
      },
    ],
  };
}
