"""Refs over a connection: what both ends have in common, the tokens that say what may be done, and the serving end.

`tokens` are chains of narrowings, `revocations` what is taken back of them, `sturdy` the form of a ref that outlives
its connection. `frames` and `messages` are the protocol, `telling` what is observed, as values. `connection` serves one
client, with `handles`, `calls`, `streams` and `desk`. None of it knows sockets: `channels` has what stands between.
"""
