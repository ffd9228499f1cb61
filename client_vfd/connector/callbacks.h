// The callbacks of the connector: those of HDF5's own, each with the connector's work around it.
// A host's callbacks are functions of their own, since HDF5 does not tell a callback whose it is.
#ifndef H5MIRROR_CLIENT_VFD_CONNECTOR_CALLBACKS_H_
#define H5MIRROR_CLIENT_VFD_CONNECTOR_CALLBACKS_H_

#include "client_vfd/connector/connector.h"

namespace h5mirror::vol {

// At most so many libraries in one process; others run without the connector.
inline constexpr int kSlots = 8;

// Set before the host gets its class.
inline Connector* slots[kSlots];

// The effect of a call. `Note` is given the connector and the call's own arguments.
struct ChangesNothing {
  static void Note(Connector&, auto&&...) {}
};

// The object that the call is about.
template <H5I_type_t kType>
struct ChangesObject {
  static void Note(Connector& connector, void* object, auto&&...) {
    connector.NoteChange(object, kType);
  }
};

// Something at a location.
struct ChangesAt {
  static void Note(Connector& connector, void* object, const H5VL_loc_params_t* at, auto&&...) {
    connector.NoteChange(object, at->obj_type);
  }
};

struct ChangesDatasets {
  static void Note(Connector& connector, size_t count, void* datasets[], auto&&...) {
    for (size_t index = 0; index < count; ++index) {
      connector.NoteChange(datasets[index], H5I_DATASET);
    }
  }
};

// A new link. For a hard link HDF5 may name the file only by the object that the link leads to.
struct ChangesByLink {
  static void Note(Connector& connector, H5VL_link_create_args_t* args, void* object,
                   const H5VL_loc_params_t* at, auto&&...) {
    if (object != nullptr) return connector.NoteChange(object, at->obj_type);
    if (args->op_type != H5VL_LINK_CREATE_HARD) return;
    connector.NoteChange(args->args.hard.curr_obj, args->args.hard.curr_loc_params.obj_type);
  }
};

// A copy or a move. Either side may be null; then it lies in the other side's file.
struct ChangesBoth {
  static void Note(Connector& connector, void* from, const H5VL_loc_params_t* at_from, void* to,
                   const H5VL_loc_params_t* at_to, auto&&...) {
    if (from != nullptr) connector.NoteChange(from, at_from->obj_type);
    if (to != nullptr) connector.NoteChange(to, at_to->obj_type);
  }
};

// H5Ocopy changes only its target.
struct ChangesTarget {
  static void Note(Connector& connector, void*, const H5VL_loc_params_t*, const char*, void* to,
                   const H5VL_loc_params_t* at_to, auto&&...) {
    connector.NoteChange(to, at_to->obj_type);
  }
};

// Calls with several operations, of which only some change the file.
struct ChangesByAttribute {
  static void Note(Connector& connector, void* object, const H5VL_loc_params_t* at,
                   const H5VL_attr_specific_args_t* args, auto&&...) {
    if (args->op_type == H5VL_ATTR_EXISTS || args->op_type == H5VL_ATTR_ITER) return;
    connector.NoteChange(object, at->obj_type);
  }
};

struct ChangesByDataset {
  static void Note(Connector& connector, void* object, const H5VL_dataset_specific_args_t* args,
                   auto&&...) {
    if (args->op_type == H5VL_DATASET_SET_EXTENT) connector.NoteChange(object, H5I_DATASET);
  }
};

struct ChangesByChunk {
  static void Note(Connector& connector, void* object, const H5VL_optional_args_t* args,
                   auto&&...) {
    if (args->op_type == H5VL_NATIVE_DATASET_CHUNK_WRITE) {
      connector.NoteChange(object, H5I_DATASET);
    }
  }
};

struct ChangesByDelete {
  static void Note(Connector& connector, void* object, const H5VL_loc_params_t* at,
                   const H5VL_link_specific_args_t* args, auto&&...) {
    if (args->op_type == H5VL_LINK_DELETE) connector.NoteChange(object, at->obj_type);
  }
};

struct ChangesByCount {
  static void Note(Connector& connector, void* object, const H5VL_loc_params_t* at,
                   const H5VL_object_specific_args_t* args, auto&&...) {
    if (args->op_type == H5VL_OBJECT_CHANGE_REF_COUNT) connector.NoteChange(object, at->obj_type);
  }
};

struct ChangesByComment {
  static void Note(Connector& connector, void* object, const H5VL_loc_params_t* at,
                   const H5VL_optional_args_t* args, auto&&...) {
    if (args->op_type == H5VL_NATIVE_OBJECT_SET_COMMENT) connector.NoteChange(object, at->obj_type);
  }
};

// One callback: kGroup and kMember name it in the class.
template <int kSlot, auto kGroup, auto kMember, typename Changes, typename Function>
struct Bracketed;

template <int kSlot, auto kGroup, auto kMember, typename Changes, typename Result,
          typename... Arguments>
struct Bracketed<kSlot, kGroup, kMember, Changes, Result (*)(Arguments...)> {
  static Result Do(Arguments... arguments) {
    Connector& connector = *slots[kSlot];
    const Connector::Call call(connector);
    const Result result = (connector.native().*kGroup.*kMember)(arguments...);
    Changes::Note(connector, arguments...);
    return result;
  }
};

template <int kSlot, auto kGroup, auto kMember, typename Changes>
void Bracket(H5VL_class_t* cls) {
  auto& callback = cls->*kGroup.*kMember;
  using Function = std::remove_reference_t<decltype(callback)>;
  if (callback != nullptr) callback = Bracketed<kSlot, kGroup, kMember, Changes, Function>::Do;
}

// H5Fcreate and H5Fopen, H5Fget_access_plist, H5Freopen, H5Fclose.
template <int kSlot>
struct FileCalls {
  static void* Create(const char* name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t dxpl,
                      void** req) {
    return slots[kSlot]->CreateFile(name, flags, fcpl, fapl, dxpl, req);
  }
  static void* Open(const char* name, unsigned flags, hid_t fapl, hid_t dxpl, void** req) {
    return slots[kSlot]->OpenFile(name, flags, fapl, dxpl, req);
  }
  static herr_t Get(void* file, H5VL_file_get_args_t* args, hid_t dxpl, void** req) {
    return slots[kSlot]->GetOfFile(file, args, dxpl, req);
  }
  static herr_t Specific(void* file, H5VL_file_specific_args_t* args, hid_t dxpl, void** req) {
    if (args->op_type == H5VL_FILE_IS_ACCESSIBLE && !slots[kSlot]->IsAsked(*args)) {
      *args->args.is_accessible.accessible = false;
      return 0;
    }
    const herr_t result = slots[kSlot]->native().file_cls.specific(file, args, dxpl, req);
    if (result >= 0 && args->op_type == H5VL_FILE_REOPEN) {
      slots[kSlot]->NoteReopened(file, *args->args.reopen.file);
    }
    if (result >= 0 && args->op_type == H5VL_FILE_FLUSH) slots[kSlot]->NoteFlushed(file);
    return result;
  }
  static herr_t Close(void* file, hid_t dxpl, void** req) {
    return slots[kSlot]->CloseFile(file, dxpl, req);
  }
};

template <int kSlot>
void PutCallbacks(H5VL_class_t* cls) {
  constexpr auto attr = &H5VL_class_t::attr_cls;
  Bracket<kSlot, attr, &H5VL_attr_class_t::create, ChangesAt>(cls);
  Bracket<kSlot, attr, &H5VL_attr_class_t::read, ChangesNothing>(cls);
  Bracket<kSlot, attr, &H5VL_attr_class_t::write, ChangesObject<H5I_ATTR>>(cls);
  Bracket<kSlot, attr, &H5VL_attr_class_t::specific, ChangesByAttribute>(cls);
  Bracket<kSlot, attr, &H5VL_attr_class_t::optional, ChangesNothing>(cls);
  constexpr auto dataset = &H5VL_class_t::dataset_cls;
  Bracket<kSlot, dataset, &H5VL_dataset_class_t::create, ChangesAt>(cls);
  Bracket<kSlot, dataset, &H5VL_dataset_class_t::read, ChangesNothing>(cls);
  Bracket<kSlot, dataset, &H5VL_dataset_class_t::write, ChangesDatasets>(cls);
  Bracket<kSlot, dataset, &H5VL_dataset_class_t::specific, ChangesByDataset>(cls);
  Bracket<kSlot, dataset, &H5VL_dataset_class_t::optional, ChangesByChunk>(cls);
  Bracket<kSlot, &H5VL_class_t::datatype_cls, &H5VL_datatype_class_t::commit, ChangesAt>(cls);
  constexpr auto group = &H5VL_class_t::group_cls;
  Bracket<kSlot, group, &H5VL_group_class_t::create, ChangesAt>(cls);
  Bracket<kSlot, group, &H5VL_group_class_t::optional, ChangesNothing>(cls);
  constexpr auto link = &H5VL_class_t::link_cls;
  Bracket<kSlot, link, &H5VL_link_class_t::create, ChangesByLink>(cls);
  Bracket<kSlot, link, &H5VL_link_class_t::copy, ChangesBoth>(cls);
  Bracket<kSlot, link, &H5VL_link_class_t::move, ChangesBoth>(cls);
  Bracket<kSlot, link, &H5VL_link_class_t::specific, ChangesByDelete>(cls);
  constexpr auto object = &H5VL_class_t::object_cls;
  Bracket<kSlot, object, &H5VL_object_class_t::copy, ChangesTarget>(cls);
  Bracket<kSlot, object, &H5VL_object_class_t::specific, ChangesByCount>(cls);
  Bracket<kSlot, object, &H5VL_object_class_t::optional, ChangesByComment>(cls);
  cls->file_cls.create = FileCalls<kSlot>::Create;
  cls->file_cls.open = FileCalls<kSlot>::Open;
  cls->file_cls.get = FileCalls<kSlot>::Get;
  cls->file_cls.specific = FileCalls<kSlot>::Specific;
  cls->file_cls.close = FileCalls<kSlot>::Close;
}

}  // namespace h5mirror::vol

#endif  // H5MIRROR_CLIENT_VFD_CONNECTOR_CALLBACKS_H_
