import { keepsRecords } from '../../kit/conformance/dns.ts';
import { simulatedDNSTestbed } from '../../kit/conformance/dns-testbeds.ts';
import { sharedApiserver } from '../../kit/shared-apiserver.ts';

keepsRecords('simulated', async () => {
  let writes = 0;
  const server = await sharedApiserver();
  const client = server.connect({
    onRequest: ({ method }) => {
      if (method !== 'GET') writes++;
    },
  });
  return simulatedDNSTestbed(
    client,
    server.namespace,
    () => writes,
    () => server.leave(),
  );
});
