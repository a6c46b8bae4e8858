from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class KeyScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEY_SCOPE_UNSPECIFIED: _ClassVar[KeyScope]
    KEY_SCOPE_READ: _ClassVar[KeyScope]
    KEY_SCOPE_WRITE: _ClassVar[KeyScope]
    KEY_SCOPE_LEARN: _ClassVar[KeyScope]
    KEY_SCOPE_ADMIN: _ClassVar[KeyScope]
KEY_SCOPE_UNSPECIFIED: KeyScope
KEY_SCOPE_READ: KeyScope
KEY_SCOPE_WRITE: KeyScope
KEY_SCOPE_LEARN: KeyScope
KEY_SCOPE_ADMIN: KeyScope
