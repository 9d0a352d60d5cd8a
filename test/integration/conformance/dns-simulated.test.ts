import { startApiserver } from '../../kit/apiserver.ts';
import { keepsRecords } from '../../kit/conformance/dns.ts';
import { simulatedDNSScene } from '../../kit/conformance/dns-scenes.ts';

keepsRecords('simulated', async () => {
  let writes = 0;
  const server = await startApiserver({
    onRequest: ({ method }) => {
      if (method !== 'GET') writes++;
    },
  });
  return simulatedDNSScene(
    server.client,
    () => writes,
    () => server.stop(),
  );
});
