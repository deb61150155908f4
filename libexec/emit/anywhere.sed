# x86's assembly with every move to or from memory as one that takes any address. On memory that is
# aligned it is as fast. With AVX no other instruction asks for an alignment.
s/^([[:space:]]+v?)mov(ap|ntp)([sd])([[:space:]])/\1movup\3\4/
s/^([[:space:]]+v)movntdqa?([[:space:]].*%zmm)/\1movdqu64\2/
s/^([[:space:]]+v?)mov(dqa|ntdqa|ntdq)([[:space:]])/\1movdqu\3/
s/^([[:space:]]+v)movdqa(32|64)([[:space:]])/\1movdqu\2\3/
