import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KubeObject } from '../../../operator/kube/resources.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
/** Where this folder is in the operator's image: beside the operator's sources, which it imports. */
const THERE = '/opt/coppice/test';
const CONFIG_MAP = 'fake-cloud';

/** What the container of the fake cloud prints. */
export interface CloudBeside {
  endpoints: Record<string, string>;
  credentials: Record<string, string>;
}

/** The sources of the fake cloud, for pods. */
export async function sourcesOfCloud(namespace: string): Promise<KubeObject> {
  const names = (await readdir(HERE, { recursive: true })).filter((name) => name.endsWith('.ts'));
  const texts = await Promise.all(
    names.map(async (name) => [`kit/cloud/${name}`, await readFile(join(HERE, name), 'utf8')]),
  );
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: CONFIG_MAP, namespace },
    data: { 'files.json': JSON.stringify(Object.fromEntries(texts)) },
  };
}

const UNPACK = `
const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');
for (const [name, text] of Object.entries(JSON.parse(readFileSync('/sources/files.json', 'utf8')))) {
  mkdirSync(require('node:path').dirname('/kit/' + name), { recursive: true });
  writeFileSync('/kit/' + name, text);
}`;

/**
 * Values of the chart by which each replica has a fake cloud of its own in container `cloud`, with plugins that are put where the operator
 * looks for them, and a folder for the state of stacks.
 * @param image the operator's
 */
export function valuesWithCloud(image: string): object {
  const securityContext = {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  };
  const mounts = [
    { name: 'data', mountPath: '/data' },
    { name: 'kit', mountPath: THERE },
  ];
  return {
    extraEnv: [{ name: 'COPPICE_DATA', value: '/data' }],
    extraVolumes: [
      { name: 'data', emptyDir: {} },
      { name: 'kit', emptyDir: {} },
      { name: 'sources', configMap: { name: CONFIG_MAP } },
    ],
    extraVolumeMounts: mounts,
    extraInitContainers: [
      {
        name: 'unpack',
        image,
        command: ['node', '-e', UNPACK],
        securityContext,
        volumeMounts: [
          { name: 'kit', mountPath: '/kit' },
          { name: 'sources', mountPath: '/sources' },
        ],
      },
      {
        name: 'cloud',
        image,
        command: ['node', `${THERE}/kit/cloud/in-pod.ts`, '/data'],
        restartPolicy: 'Always',
        securityContext,
        volumeMounts: [...mounts, { name: 'tmp', mountPath: '/tmp' }],
      },
    ],
  };
}
