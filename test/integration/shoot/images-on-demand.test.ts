import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { COMPONENTS, technicalID } from '../../../operator/api/names.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import { askFor } from '../../../operator/garden/images/asked.ts';
import { ImagesOnDemand } from '../../../operator/garden/images/images-on-demand.ts';
import type { ProgressEvent } from '../../../operator/garden/toolchain/progress.ts';
import type { Toolchain } from '../../../operator/garden/toolchain/toolchain.ts';
import type { ToolName } from '../../../operator/garden/toolchain/tools.ts';
import { silent } from '../../../operator/kube/log.ts';
import { asNobody, UNPRIVILEGED } from '../../../operator/kube/pod-security.ts';
import { type KubeObject, PODS } from '../../../operator/kube/resources.ts';
import { controlPlaneLabels } from '../../../operator/shoot/values.ts';
import { RecordedGarden } from '../../kit/recorded-garden.ts';

const NAME = 'older';
const NAMESPACE = technicalID('default', NAME);
const IMAGE = 'registry.k8s.io/kube-apiserver:v1.35.4';

let garden: RecordedGarden;
let onDemand: ImagesOnDemand | undefined;
const stopping = new AbortController();
beforeAll(async () => {
  garden = await RecordedGarden.start();
});
afterAll(async () => {
  stopping.abort();
  for (const { resolve } of builds) resolve(undefined);
  await onDemand?.stop();
  await garden?.stop();
});

/** Each try of a build waits for the next of these, and fails with what it is given. */
const builds = Array.from({ length: 2 }, () => Promise.withResolvers<Error | undefined>());

/** Builds nothing, and says how far it is with that. */
function toolchain(onProgress: (event: ProgressEvent) => void): Toolchain {
  const { directory } = garden.server;
  let tries = 0;
  const builder = {
    dir: directory,
    // Asked for all at once first, and then for that of each image.
    async ensure([tool, ...more]: [ToolName, ...ToolName[]]) {
      if (tool === 'kube-apiserver-1.35' && more.length === 0) {
        // The second try says nothing until it is through, so that what the first left can be looked at.
        if (tries === 0) onProgress({ tool, phase: 'working', source: 'build', remainingSeconds: 400 });
        const error = await builds[tries++]?.promise;
        if (error) throw error;
      }
      const file = join(directory, tool);
      await writeFile(file, tool);
      return { [tool]: file };
    },
    close: async () => {},
  };
  return builder as unknown as Toolchain;
}

/** A pod of the cluster's API server, as the seed's controllers and its kubelet make it: nobody has its image. */
async function podThatWaits(): Promise<void> {
  const { client } = garden.server;
  const container = { name: COMPONENTS.apiServer, image: IMAGE };
  await client.create({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default', namespace: NAMESPACE },
  });
  await client.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'waits',
      namespace: NAMESPACE,
      labels: controlPlaneLabels({ shoot: { name: NAME, namespace: 'default' } }),
    },
    spec: {
      automountServiceAccountToken: false,
      securityContext: asNobody(),
      containers: [{ ...container, securityContext: UNPRIVILEGED }],
    },
  } as KubeObject);
  const state = { waiting: { reason: 'ContainerCreating' } };
  const containerStatuses = [{ ...container, imageID: '', ready: false, restartCount: 0, state }];
  await client.mergePatch(PODS, 'waits', NAMESPACE, { status: { containerStatuses } }, { subresource: 'status' });
}

const available = () => findCondition(garden.cluster(NAME)?.status?.conditions, 'APIServerAvailable');
const told = (reason: string, message: string) =>
  garden.until(`${NAME} to say ${message}`, () => {
    const said = available();
    return said?.reason === reason && said.message?.includes(message) === true;
  });

it("the cluster's status shows the progress of a machine image until it is built", async () => {
  const { client, directory } = garden.server;
  for (const profile of await profileManifests())
    if (profile.metadata.name === 'simulated') await client.apply(profile);
  await client.apply({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name: NAME, namespace: 'default' },
    spec: { cloudProvider: 'simulated', controlPlaneNodes: 1, dataPlaneNodes: 1, kubernetes: { version: '1.35.4' } },
  } as KubeObject);
  await garden.until('its namespace to be there', () => garden.secrets.get(`${NAMESPACE}/pki`) !== undefined);
  await podThatWaits();
  const asked = join(directory, 'asked');
  await askFor(asked, IMAGE);
  onDemand = new ImagesOnDemand({
    asked,
    openToolchain: toolchain,
    client,
    state: { rootless: true },
    log: silent,
    signal: stopping.signal,
    say: () => {},
    againAfterMs: () => 0,
  });
  onDemand.start();
  await told('ImageIsMade', 'this machine is building Kubernetes 1.35.4, about 7 min left');
  builds[0]!.resolve(new Error('no space left on device'));
  await told('ImageCannotBeMade', 'this machine cannot make Kubernetes 1.35.4, and tries again at ');
  expect(available()?.message).toContain('no space left on device');
  builds[1]!.resolve(undefined);
  await garden.until(`${NAME} to say no more of it`, () => !/^Image/.test(available()?.reason ?? 'Image'));
  expect(JSON.stringify(garden.cluster(NAME)?.status)).not.toContain('no space left');
});
