// A real OpenID Connect provider on loopback, for the tests of signing in. It prints its address when it is ready, and
// ends when its input does. A person who signs in gets the claims that ACCOUNTS has for the name; the password is not
// looked at.

import { createServer } from "node:http";

import { SignJWT, decodeJwt, exportJWK, generateKeyPair, importJWK } from "jose";
import Provider from "oidc-provider";

const accounts = JSON.parse(process.env.ACCOUNTS);
const { privateKey } = await generateKeyPair("RS256", { extractable: true });
const jwk = { ...(await exportJWK(privateKey)), kid: "test", alg: "RS256", use: "sig" };

const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: process.env.CLIENT_ID,
      client_secret: process.env.CLIENT_SECRET,
      redirect_uris: [process.env.REDIRECT_URI],
    },
  ],
  jwks: { keys: [jwk] },
  claims: { openid: ["sub"], email: ["email"], profile: ["name", "preferred_username", "groups"] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...accounts[id] }) }),
});

// Mallory's tokens are the provider's own, with one lie in them: they are made for another client.
provider.use(async (ctx, next) => {
  await next();
  const token = ctx.body?.id_token;
  if (!token || decodeJwt(token).sub !== "mallory") return;
  const claims = { ...decodeJwt(token), aud: "another-client" };
  const header = { alg: "RS256", kid: "test" };
  const id_token = await new SignJWT(claims).setProtectedHeader(header).sign(await importJWK(jwk, "RS256"));
  ctx.body = { ...ctx.body, id_token };
});

server.on("request", provider.callback());
console.log(issuer);
process.stdin.on("end", () => process.exit(0)).resume();
