import { afterAll, beforeAll, expect, it } from 'vitest';
import { LocalVolumes, STORAGE_CLASS, storageClass } from '../../../operator/garden/seed/volumes.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import { type PersistentVolumeClaim, PVCS } from '../../../operator/kube/resources.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { Processes } from '../../kit/hubs/processes.ts';
import { testTools } from '../../kit/tools.ts';

const CLAIMS = 20;
const NAMESPACE = 'default';

let api: TestApiserver;
let processes: Processes;
let volumes: LocalVolumes;
let claims: Informer<PersistentVolumeClaim>;
beforeAll(async () => {
  api = await startApiserver();
  processes = await Processes.begin('volumes');
  const { 'kube-controller-manager': binder } = await testTools('kube-controller-manager');
  processes.run(binder, 'kube-controller-manager', [
    `--kubeconfig=${await processes.file('kubeconfig', api.kubeconfig)}`,
    '--controllers=persistentvolume-binder-controller',
    '--leader-elect=false',
    '--secure-port=0',
  ]);
  claims = new Informer<PersistentVolumeClaim>(api.client, PVCS);
  volumes = new LocalVolumes(api.client, processes.directory, silent);
});
afterAll(async () => {
  await Promise.all([volumes?.stop(), claims?.stop(), processes?.stop()]);
  await api?.stop();
});

it('a claim with a volume is bound at each read by a kubelet', async () => {
  const between: string[] = [];
  claims.onChange(({ object: { metadata, spec, status } }) => {
    if (spec.volumeName && status?.phase !== 'Bound') between.push(metadata.name);
  });
  claims.start();
  volumes.start();
  await api.client.apply(storageClass());
  const made = Array.from({ length: CLAIMS }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: `data-${at}`, namespace: NAMESPACE },
    spec: {
      storageClassName: STORAGE_CLASS,
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
    },
  }));
  await Promise.all(made.map((claim) => api.client.create(claim)));
  const isDone = ({ spec, status }: PersistentVolumeClaim) =>
    Boolean(spec.volumeName) && status?.capacity !== undefined;
  await claims.waitFor(() => claims.list().filter(isDone).length === CLAIMS || undefined, {
    timeoutMs: 30_000,
    what: 'all claims to be bound',
  });
  expect(between).toEqual([]);
});
