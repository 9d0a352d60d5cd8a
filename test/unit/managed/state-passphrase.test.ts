import { expect, it } from 'vitest';
import { stateBackend } from '../../../operator/accounts/state-backend.ts';
import { SECRETS } from '../../../operator/kube/resources.ts';
import { buildCloudProfile } from '../../kit/builders/objects.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

const profile = buildCloudProfile({
  metadata: { name: 'aws' },
  spec: { stateBackend: { url: 's3://bucket' } },
});

it('an operator with the passphrase in memory restores its deleted Secret', async () => {
  const garden = new MemoryApiServer();
  const create = garden.create.bind(garden);
  garden.create = (object) => {
    const { stringData = {}, ...rest } = object as unknown as { stringData?: Record<string, string> };
    const data = Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    return create({ ...(rest as typeof object), data: Object.fromEntries(data) });
  };
  const ask = () => stateBackend({ garden: garden as never, namespace: 'coppice', directory: undefined }, profile);
  const { passphrase } = await ask();
  await garden.delete(SECRETS, 'coppice-state-passphrase', 'coppice');
  expect((await ask()).passphrase).toBe(passphrase);
  expect(garden.writes.at(-1)).toBe('create secrets coppice/coppice-state-passphrase');
});
